"""Decoding settings: parses and checks `--decode_hparams`, with tensor2tensor's names and values."""

import dataclasses
import re

from t2t_lite.errors import LOGGER, UserError, located, nearest, shown
from t2t_lite.files.pipes import is_device
from t2t_lite.settings.config import HParams, parse_assignments
from t2t_lite.settings.ranges import BEAM_SIZE, COUNT, SHARDS, Choices, check_settings, setting, settings_of, typed_text
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.settings.tensor2tensor_names import hparam_answer

_METHODS = {"argmax": False, "random": True, "random_per_example": True}  # sampling_method: SearchOptions.sampling
_SEARCH = settings_of(SearchOptions)
_IN_SEARCH = {declared.flag or name: name for name, declared in _SEARCH.items() if declared.flag is not None}
SEARCH_NAMES = {setting: name for name, setting in _IN_SEARCH.items()}  # {SearchOptions field: setting}
# {(setting, its value in tensor2tensor): value in `SearchOptions`}.
_VALUES = {("batch_size", "0"): SearchOptions.batch_size, ("sampling_keep_top_k", "-1"): 0}
_MBR_SAMPLES = 32
_OUTPUT = {"excludes": ("targets",)}

EVALUATION_SETTINGS = ("beam_size", "alpha", "extra_length", "length_penalty", "batch_size")
DEFAULT_GRID = "beam_size=1,4,8;alpha=0,0.6,1"  # default grid of t2t-decoder --tune
_DEFAULTS = ", ".join(f"{name}={_SEARCH[name].default}" for name in (*EVALUATION_SETTINGS, "ends"))
HELP = (
    f"Decoding settings name=value,…: {_DEFAULTS} (beam_size=1: greedy search; extra_length: number of pieces by which "
    "an output may exceed its input; batch_size: sentences), no_repeat_ngram_size, repetition_penalty, stop (a text, "
    "or [one,other], at which an output ends), banned_texts (a text, or [one,other], that outputs never contain), "
    "return_beams, n_best, write_beam_scores, max_input_size, sampling_method=random, sampling_temp, "
    "sampling_keep_top_k, sampling_keep_top_p, sampling_seed, num_samples, num_decodes, replace_unknown, delimiter, "
    "shards, shard_id, shards_start_offset, shard_google_format, identity_output, log_results. A problem may override "
    "the defaults; for example, a parsing problem has beam_size=21, alpha=0.3, extra_length=300."
)


@dataclasses.dataclass
class DecodeHParams:
    """The settings of `--decode_hparams` (tensor2tensor's utils/decoding.py).

    Attributes:
        search: SearchOptions. On the command line the search settings are beam_size, alpha, extra_length (100 in
            tensor2tensor), length_penalty, ends, batch_size (0: the default), no_repeat_ngram_size, repetition_penalty,
            stop (a text or a list of texts, see `unescaped`), banned_texts (a text or a list), sampling_method
            ("argmax" searches; "random" samples, as does tensor2tensor's "random_per_example"), sampling_temp,
            sampling_keep_top_k (-1: all), sampling_keep_top_p and sampling_seed. In tensor2tensor sampling_method and
            sampling_temp are hyperparameters of the model.
        return_beams: write all beam_size outputs for an input line, separated by tabs, best first. If the problem
            reranks outputs, its selected output comes first.
        n_best: number of outputs to write per input line; 0 means one, or beam_size with return_beams.
        write_beam_scores: write the score of each output after the output.
        max_input_size: maximum length of an input in ids, EOS included; -1 means the model's maximum.
        num_samples: number of outputs sampled per line. When a problem's records are decoded, this is the number of
            records instead, as in tensor2tensor.
        num_decodes: number of passes over a problem's records when sampling; each pass is written to its own folder.
        replace_unknown: replace an output's unknown pieces with the input words to which they attend most.
        identity_output: write ids instead of text.
        delimiter: the text that ends a record in input and output files.
        shards, shard_id, shards_start_offset, shard_google_format: this command's shard, see `t2t_decoder`.
        log_results: log every input and output to stderr.
    """

    search: SearchOptions = dataclasses.field(default_factory=SearchOptions)
    return_beams: bool = setting(False, excludes=("samples", "targets"))
    n_best: int = setting(0, 0, BEAM_SIZE.most, predicts=True, needs=("ranked",), **_OUTPUT)
    write_beam_scores: bool = setting(False, **_OUTPUT)
    max_input_size: int = setting(-1, 1, 2**20, also=(-1,), predicts=True, **_OUTPUT)
    num_samples: int = setting(-1, 1, 2**31 - 1, also=(-1,), needs=("samples_or_records",), **_OUTPUT)
    num_decodes: int = setting(1, 1, 1000, needs=("sampled_records",), **_OUTPUT)
    replace_unknown: bool = setting(False, needs=("translation", "attention"), **_OUTPUT)
    identity_output: bool = setting(False, **_OUTPUT)
    delimiter: str = setting("\n", predicts=True)
    shards: int = setting(1, limits=SHARDS, predicts=True, needs=("input_file",))
    shard_id: int = setting(0, 0, SHARDS.most - 1, predicts=True)
    shards_start_offset: int = setting(0, limits=COUNT, predicts=True)
    shard_google_format: bool = setting(False, predicts=True)
    log_results: bool = setting(False, predicts=True, **_OUTPUT)

    @classmethod
    def parse(cls, text, where="--decode_hparams", defaults=(), mbr=False):
        """Parses `name=value,name=value`.

        Args:
            text: str.
            where: str, the flag's name in messages.
            defaults: dict, the problem's defaults (`Problem.decode_defaults`).
            mbr: bool, whether outputs are selected by minimum Bayes risk decoding instead of a beam search.

        Raises:
            UserError: a name is unknown (the message lists the nearest names), a value has the wrong type or is out of
                range, or a setting of tensor2tensor has no meaning here.
        """
        parsed, search, kinds = cls(), dict(defaults), decode_settings()
        for name, value in parse_assignments(text, where).items():
            if name in _NO_EFFECT:
                LOGGER.warning("%s: %s has no effect: %s.", where, name, _NO_EFFECT[name])
            elif name in _REFUSED:
                only, why = _REFUSED[name]
                if str(value).lower() != only.lower():
                    raise UserError(f"{where}: {name}={typed_text(value)} is not available: {why}. Remove it.")
            elif name not in kinds:
                raise UserError(f"{where}: {shown(name)} is unknown. {_instead(name, kinds)}")
            else:
                if name in ("stop", "banned_texts"):
                    value = [unescaped(one) for one in ([value] if isinstance(value, str) else value)]
                with located(where):
                    value = kinds[name].typed(_VALUES.get((name, str(value)), value))
                if name in _IN_SEARCH:
                    search[_IN_SEARCH[name]] = _METHODS[value] if name == "sampling_method" else value
                else:
                    setattr(parsed, name, value)
        with located(where):
            parsed.search = SearchOptions(**search)
            parsed.delimiter = unescaped(parsed.delimiter)
            parsed.check(mbr)
        return parsed

    def check(self, mbr=False):
        """Raises `UserError` for values out of range. num_samples is not limited, since it may count records."""
        check_settings(self, limited_only=True)
        if not mbr:
            (dataclasses.replace(self, num_samples=-1) if self.search.sampling else self).search_options()
        if not 0 <= self.shard_id < self.shards:
            raise UserError(
                f"shard_id={self.shard_id}: with shards={self.shards}, expected a number from 0 to {self.shards - 1}."
            )
        if not self.delimiter:
            raise UserError("delimiter: expected at least one character; \\n, \\t and \\0 have their usual meaning.")

    def shard_name(self, path):
        """Returns the path of this command's shard of a file: `<path>003`, or `<path>-00003-of-00008`.

        A pipe or a device such as /dev/stdout is not a name for files, so its path is returned unchanged.
        """
        if self.shards == 1 or path in ("", "-") or is_device(path):
            return path
        number = self.shard_id + self.shards_start_offset
        return f"{path}-{number:05d}-of-{self.shards:05d}" if self.shard_google_format else f"{path}{number:03d}"

    def shard_range(self, count):
        """Returns the range (begin, end) of this command's shard among `count` lines."""
        return count * self.shard_id // self.shards, count * (self.shard_id + 1) // self.shards

    def value(self, name):
        """Returns the value of a setting by its name in --decode_hparams."""
        return getattr(self.search, _IN_SEARCH[name]) if name in _IN_SEARCH else getattr(self, name)

    def changed(self, names):
        """Returns the --decode_hparams names of the settings whose values are not the defaults."""
        declared, usual = decode_settings(), DecodeHParams()
        return [name for name in names if name in declared and self.value(name) != usual.value(name)]

    def searching(self, **options):
        """Returns a copy of the decoding settings with other `SearchOptions`."""
        return dataclasses.replace(self, search=dataclasses.replace(self.search, **options))

    @property
    def num_outputs(self):
        """The number of outputs written per input line."""
        if self.search.sampling:
            return max(self.num_samples, 1)
        return self.n_best or (self.search.beam_size if self.return_beams else 1)

    @property
    def mbr_samples(self):
        """The number of samples per input line in minimum Bayes risk decoding."""
        return _MBR_SAMPLES if self.num_samples == -1 else self.num_samples

    def search_options(self, mbr=False):
        """Returns `search` with `n_best` set. With `mbr`, `search` is returned unchanged, since all samples are
        compared.

        Raises:
            UserError: a value is out of range, for example too many samples, or more outputs than samples or beams.
        """
        if self.search.sampling or mbr:
            num_samples = self.mbr_samples if mbr else self.num_outputs
            dataclasses.replace(_SEARCH["n_best"], name="num_samples").typed(num_samples)
        if mbr:
            if self.n_best > num_samples:
                raise UserError(f"n_best={self.n_best}: expected at most num_samples={num_samples}.")
            return self.search
        return dataclasses.replace(self.search, n_best=self.num_outputs)


def evaluation_search(text):
    """Parses the search settings for evaluations, `name=value,…`; returns a dict, or None if there are none.

    Raises:
        UserError: a setting is not used by evaluations, or a value is out of range.
    """
    assignments, search = parse_assignments(text, "--decode_hparams"), DecodeHParams.parse(text).search
    if other := [name for name in assignments if name not in EVALUATION_SETTINGS]:
        raise UserError(
            f"--decode_hparams: {other[0]} has no effect in evaluations. Expected {', '.join(EVALUATION_SETTINGS)}; "
            "other settings are for t2t-decoder."
        )
    return {name: getattr(search, name) for name in assignments} or None


def decode_settings():
    """Returns all decoding settings, {name: Setting}."""
    own_settings = {name: declared for name, declared in settings_of(DecodeHParams).items() if name != "search"}
    search = {name: dataclasses.replace(_SEARCH[field], name=name) for name, field in _IN_SEARCH.items()}
    method = {"kind": str, "default": "argmax", "limits": Choices(tuple(_METHODS))}
    return search | {"sampling_method": dataclasses.replace(search["sampling_method"], **method)} | own_settings


def unescaped(text):
    r"""Returns a text in which \n, \t, \s (a space), \0 and \, are replaced by the characters that they stand for."""
    return re.sub(r"\\([nts0,])", lambda found: {"n": "\n", "t": "\t", "s": " ", "0": "\0", ",": ","}[found[1]], text)


def _instead(name, kinds):
    """Returns a sentence of advice on what to use instead of an unknown setting."""
    if name in ("decode_reference", "decode_to_file", "long_input", "split_sentences"):
        return f"It is a flag: --{name}{'=FILE' * name.startswith('decode_')}."
    if (short := name.removeprefix("decode_")) in kinds and short != name:
        return f"Use {short} instead."
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    if name in HParams():
        return f"It is a hyperparameter of the model: use --hparams={name}=VALUE when you train the model."
    return hparam_answer(name) or f"{nearest(name, kinds, end=' ')}All settings: {', '.join(kinds)}."


# {setting in Hugging Face's `generate` or another toolkit: advice}.
_ELSEWHERE = {
    "min_length": "A minimum length of outputs is not supported; a larger alpha prefers longer outputs. "
    "(--hparams=min_length applies to training examples.)",
    "max_length": "An output may have up to extra_length more pieces than its input. (--hparams=max_length applies to "
    "training examples.)",
    "num_beams": "Use beam_size instead.",
    "num_return_sequences": "Use n_best instead, or num_samples with sampling_method=random.",
    "do_sample": "Use sampling_method=random instead.",
    "temperature": "Use sampling_temp instead.",
    "top_k": "Use sampling_keep_top_k instead.",
    "top_p": "Use sampling_keep_top_p instead.",
    "seed": "Use sampling_seed instead.",
    "max_new_tokens": "Use extra_length instead.",
    "bad_words_ids": "Use banned_texts, a list of texts, instead.",
}

# {setting of tensor2tensor that must have its default here: reason}.
_REFUSED = {
    "export_extra_infer_outputs": ("", "t2t-exporter defines the outputs of an export"),
    "force_decode_length": ("False", "the model determines the end of an output"),
    "multiproblem_task_id": ("-1", "multi-problems are not supported"),
}
_UNREAD = "tensor2tensor does not use it for text either"
_NO_EFFECT = {
    "decode_in_memory": "outputs are written to a file or to standard output, and in Python they are returned",
    "skip_eos_postprocess": "an output contains nothing after its end",
} | dict.fromkeys((
    "border_percent", "block_size", "decode_timeout_mins", "display_decoded_images", "eos_penalty",
    "frames_per_second", "guess_and_check_epsilon", "guess_and_check_top_k", "insertion_parallel",
    "max_display_decodes", "max_display_outputs", "min_length_ratio", "mlperf_decode_step", "mlperf_mode",
    "mlperf_success", "mlperf_threshold", "save_images", "summaries_log_dir", "vgg_ckpt_path",
), _UNREAD)  # fmt: skip
