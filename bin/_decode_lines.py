"""What all ways of decoding share: the model on its devices, settings, and what is said about lines."""

import logging
import os
import sys

from t2t_lite.bin import _trained
from t2t_lite.errors import UserError

_LOGGER = logging.getLogger("t2t_lite")
_INPUTS = ("decode_from_file", "decode_reference", "prefix_file", "score_file")
_MANY = 10  # lines that are named in one message


class LineErrors:
    """What becomes of a line that cannot be translated: by --on_error=stop the end, by skip a warning.

    Attributes:
        count: int, lines that were skipped.
    """

    def __init__(self, flags):
        self._skip = flags.on_error == "skip"
        self.count = 0

    def __call__(self, message):
        if not self._skip:
            raise UserError(f"{message} (--on_error=skip leaves its output empty.)")
        self.count += 1
        _LOGGER.warning(f"{message} Skipped.")

    def done(self):
        """Says how many there were."""
        if self.count:
            _LOGGER.warning(f"{self.count:,} line{'s' * (self.count != 1)} skipped: their outputs are empty.")


def check_files(flags, settings, outputs, inputs=None):
    """Raises `UserError` where an output would overwrite an input, a file of the model or another output.

    Args:
        outputs: {flag: path, or list of paths}, those that will be written; "-" is standard output.
        inputs: further ones, {what a message calls it: path, or list of paths}.
    """
    from t2t_lite.files import check_outputs

    given = {f"--{name}": flags[name].value for name in _INPUTS}
    parts = {name: [path, shard_name(path, settings)] for name, path in given.items() if path}
    check_outputs(parts | {"the model's": _trained.model_files(flags)} | (inputs or {}), outputs)


def load_translator(flags):
    """Returns a Translator, or a TranslatorPool over the devices that the flags ask for. Raises `UserError`."""
    from t2t_lite.decoding.translator_pool import TranslatorPool
    from t2t_lite.training.distribution import choose_devices

    devices, description = choose_devices(flags.worker_gpu, flags.logical_cpus)
    if flags["worker_gpu"].present or flags["logical_cpus"].present:
        _LOGGER.info(description)
    if len(devices) < 2:
        return _trained.load_translator(flags)
    return _trained.load_translator(flags, lambda *args: TranslatorPool.load(devices, *args))


def line_translator(flags, settings, translator, name, errors):
    """Returns the LineTranslator that the flags describe; `name` is what the lines are of."""
    from t2t_lite.decoding.line_translation import LineTranslator

    return LineTranslator(
        translator,
        settings,
        name,
        long_input=flags.long_input,
        on_error=errors,
        utility=flags.mbr,
        token_scores=flags.n_best_format == "json",
        alignments=bool(flags.alignments_file),
    )


def formatted(flags, settings, lines, translations, first):
    """Returns what is written for lines, a list of str without ends. `first` is the number of the first one."""
    from t2t_lite.decoding import text_files

    outputs = []
    for number, (line, translation) in enumerate(zip(lines, translations, strict=True), first):
        if flags.n_best_format == "json":
            outputs.append(text_files.json_line(number, line or "", translation))
        else:
            outputs.append(text_files.output_line(translation, settings))
        if settings.log_results:
            _LOGGER.info(f"INPUT: {text_files.as_field(line or '')}\nOUTPUT: {outputs[-1]}")
    return outputs


def say_what_was_long(lines_of, translations, first):
    """Warns of lines that were cut off or split.

    Args:
        lines_of: LineTranslator.
        translations: list of LineTranslation.
        first: int, the number of the first line.
    """
    numbered = list(enumerate(translations, first))
    cut = [str(number) for number, found in numbered if found.truncated]
    split = [f"{number} ({found.parts} parts)" for number, found in numbered if found.parts > 1]
    for what, lines in (("cut off after", cut), ("split, being longer than", split)):
        if lines:
            shown = ", ".join(lines[:_MANY]) + (f", … ({len(lines):,} lines)" if len(lines) > _MANY else "")
            _LOGGER.warning(f"{lines_of.name}: {what} {lines_of.limit:,} pieces: line {shown}")


def default_name(path, config, settings):
    """tensor2tensor's name of the output: `<input>.<model>.<hparams_set>.<problem>.beam4.alpha0.6.decodes`."""
    names = [config["model"], config["hparams_set"], config["problem"]]
    return ".".join([path, *filter(None, names), f"beam{settings.beam_size}.alpha{settings.alpha}.decodes"])


def shard_name(path, settings):
    """Returns the name of this command's part of a file: `<path>003`, or `<path>-00003-of-00008`."""
    if settings.shards == 1 or path in ("", "-"):
        return path
    number = settings.shard_id + settings.shards_start_offset
    return f"{path}-{number:05d}-of-{settings.shards:05d}" if settings.shard_google_format else f"{path}{number:03d}"


def shard_range(count, settings):
    """Returns (begin, end) of this command's part of so many lines."""
    return count * settings.shard_id // settings.shards, count * (settings.shard_id + 1) // settings.shards


def take_time(flags, path):
    """Gives a file the time of the checkpoint; of several, of the newest one."""
    times = [
        os.path.getmtime(f"{checkpoint}.index")
        for checkpoint in _trained.checkpoints(flags)
        if os.path.exists(f"{checkpoint}.index")
    ]
    if times and os.path.isfile(path):
        os.utime(path, (max(times), max(times)))


def show_bleu(outputs, references):
    """Prints sacreBLEU with its signature on stderr. Tensor2tensor's BLEU_cased is another measure: see t2t-bleu."""
    from t2t_lite.evaluation.scores import METRICS, corpus_bleu

    print(f"{METRICS['bleu']} = {corpus_bleu(outputs, references)}", file=sys.stderr)
