"""DecodingJob: the model, devices, settings and files of a run of t2t-decoder."""

import concurrent.futures
import dataclasses
import functools
import os
from typing import ClassVar

import tensorflow as tf

from t2t_lite import files, registry
from t2t_lite.decoding.bfloat16 import usable_dtype
from t2t_lite.decoding.command import text_files
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.lines import LineGenerator, LinePredictor, LineTranslator
from t2t_lite.decoding.generator import Generator
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import LOGGER, UserError, counted
from t2t_lite.evaluation.tokenizations import tokenization_of_problem
from t2t_lite.runs.locating import run_files


class LineErrors:
    """Handles lines that cannot be translated: "stop" raises an error, "skip" warns.

    Attributes:
        count: int, the number of skipped lines.
    """

    def __init__(self, on_error):
        self._skip = on_error == "skip"
        self.count = 0

    def __call__(self, message):
        """Handles a line: raises `UserError`, or warns and counts the line."""
        if not self._skip:
            if "--on_error" not in message:  # it is in the advice about a line that is not UTF-8
                message += " To leave the output of such lines empty instead, add --on_error=skip."
            raise UserError(message)
        self.count += 1
        LOGGER.warning(f"{message} Skipped.")

    def done(self):
        """Logs how many lines were skipped."""
        if self.count:
            LOGGER.warning(f"{counted(self.count, 'line')} skipped, with empty output.")


@dataclasses.dataclass
class DecodingJob:
    """A model, and the settings with which it converts lines to outputs.

    Attributes:
        runs: list of `runs.locating.LocatedRun`: the model's checkpoint, or several for an ensemble.
        settings: DecodeHParams.
        data_dir: folder of the records to decode, or of the vocabulary if it is not in the checkpoint's folder.
        devices: names of devices that share the lines. With fewer than two names, TensorFlow selects the device.
        inputs: {name in messages: path}, the input files, which outputs must not overwrite.
        long_input, split_sentences: see `LineTranslator`.
        on_error: "stop" or "skip", what to do with a line that cannot be translated.
        n_best_format: "text" or "json".
        mbr: None, or the utility function by which outputs are selected from samples.
        tokenization: the tokenization for BLEU, or None: see `bleu_tokenization`.
        alignments_file: path for word alignments, or "".
        told_files: {name of a `Teller`: path of the file for its values}.
        keep_timestamp: bool, whether outputs get the checkpoint's modification time.
        compute_dtype: see `Translator.load`.
        chunk: int, class attribute: number of lines per device that are translated before they are written. The chunk
            is large enough for sorting by length, and small enough to lose little work if the process is killed.
    """

    runs: list
    settings: DecodeHParams
    data_dir: str | None = None
    devices: list = ()
    inputs: dict = dataclasses.field(default_factory=dict)
    long_input: str | None = None
    split_sentences: str | None = None
    on_error: str = "stop"
    n_best_format: str = "text"
    mbr: str | None = None
    tokenization: str | None = None
    alignments_file: str = ""
    told_files: dict = dataclasses.field(default_factory=dict)
    keep_timestamp: bool = False
    compute_dtype: str | None = None
    chunk: ClassVar = 2000

    @functools.cached_property
    def translator(self):
        """The Translator, Generator, Predictor, or TranslatorPool of several. It is loaded at its first use."""
        load = (Predictor if self.predicts else Generator if self.generates else Translator).load
        arguments = self.runs, self.data_dir, usable_dtype(self.compute_dtype)
        if len(self.devices) > 1:
            return TranslatorPool([(device, _on(device, load, *arguments)) for device in self.devices])
        return load(*arguments)

    @property
    def generates(self):
        """Whether the model is a language model, which continues the lines."""
        return registry.task_of(self.runs[0].problem).answered_by == "Generator"

    @property
    def predicts(self):
        """Whether the model is an encoder, which makes predictions for the lines."""
        return registry.task_of(self.runs[0].problem).answered_by == "Predictor"

    @property
    def bleu_tokenization(self):
        """The tokenization for BLEU: `tokenization` if it is given, otherwise the one that evaluations use."""
        return self.tokenization or tokenization_of_problem(self.translator.problem, self.translator.hparams)

    def check_files(self, outputs, inputs=None):
        """Raises `UserError` if an output would overwrite an input, a file of the model or another output.

        Args:
            outputs: {flag: path, or list of paths}, the files to write, where "-" is standard output.
            inputs: further inputs, {name in messages: path, or list of paths}.
        """
        parts = {name: [path, self.settings.shard_name(path)] for name, path in self.inputs.items() if path}
        for paths in parts.values():
            paths += files.find_files(paths[0], ("",)) if os.path.isdir(paths[0]) else []
        model_files = [path for run in self.runs for path in run_files(os.path.dirname(run.checkpoint))]
        files.check_outputs(parts | {"the model's": model_files} | (inputs or {}), outputs)

    def files_beside(self):
        """Returns the additional output files, {name in `LineAnswer.beside`: (flag, path)}.

        Each file has one line per input line.
        """
        paths = {"alignment": ("--alignments_file", self.alignments_file)} if self.alignments_file else {}
        paths |= {name: (f"--{registry.teller(name).flag}", path) for name, path in self.told_files.items()}
        return {name: (flag, self.settings.shard_name(path)) for name, (flag, path) in paths.items()}

    def with_settings(self, settings):
        """Returns a job with other settings that is otherwise the same and shares the loaded translator."""
        job = dataclasses.replace(self, settings=settings)
        job.translator = self.translator
        return job

    def reader(self, path):
        """Returns the function that reads a file to decode, with the arguments of `text_files.input_lines`."""
        run = self.runs[0]
        folder = self.data_dir or os.path.dirname(run.checkpoint)
        return text_files.reader(path, run.problem, folder, lambda: self.translator.encoders)

    @functools.cached_property
    def errors(self):
        """The handler of this job's lines that cannot be translated."""
        return LineErrors(self.on_error)

    def lines_of(self, name, **options):
        """Returns a `Lines` object that answers the lines of the source `name`; options are arguments of `Lines`."""
        lines_class = LinePredictor if self.predicts else LineGenerator if self.generates else LineTranslator
        options |= {"long_input": self.long_input, "on_error": self.errors, "as_json": self.n_best_format == "json"}
        if lines_class is LineTranslator:
            options |= {"split_sentences": self.split_sentences, "alignments": bool(self.alignments_file)}
            options |= {"told": [*self.told_files], "utility": self.mbr, "tokenize": self.tokenization}
        return lines_class(self.translator, self.settings, name, **options)

    def default_name(self, path):
        """Returns tensor2tensor's name for an output: `<input>.<model>.<hparams_set>.<problem>.beam4.alpha0.6.decodes`.

        For predictions, which are made without a beam, the name has no beam size.
        """
        names = [self.runs[0].config[name] for name in ("model", "hparams_set", "problem")]
        beam = [] if self.predicts else [f"beam{self.settings.search.beam_size}.alpha{self.settings.search.alpha}"]
        return ".".join([path.rstrip("/"), *filter(None, names), *beam, "decodes"])

    def take_time(self, path):
        """Gives a file the modification time of the checkpoint, or of an ensemble's newest checkpoint."""
        paths = [f"{run.checkpoint}.index" for run in self.runs]
        times = [os.path.getmtime(path) for path in paths if os.path.exists(path)]
        if times and os.path.isfile(path):
            os.utime(path, (max(times), max(times)))


# Methods whose texts are distributed over the devices. `answer` runs on the pool itself and calls these methods, so
# that the parts of long texts are distributed as well.
_SHARED = ("translate", "translate_by_risk", "generate", "score", "score_ids", "predict", "fill_mask", "features")


class TranslatorPool:
    """Copies of a `Translator`, `Generator` or `Predictor` on several devices, which share the work of each call.

    Texts are distributed by length: all devices get about the same amount of work, regardless of how fast they are.

    Args:
        translators: list of pairs (name of a device, Translator, Generator or Predictor with its weights on this
            device).
    """

    def __init__(self, translators):
        self._devices, self._translators = zip(*translators, strict=True)

    @property
    def search_history(self):
        """The `Searcher.history` of each translator."""
        return [translator.search_history for translator in self._translators]

    @search_history.setter
    def search_history(self, histories):
        for translator, history in zip(self._translators, histories, strict=True):
            translator.search_history = history

    def __getattr__(self, name):
        if name in _SHARED:
            return functools.partial(self._deal, name)
        if name == "answer":
            return functools.partial(type(self._translators[0]).answer, self)
        return getattr(self._translators[0], name)

    def _deal(self, method, texts, **options):
        """Calls a method of each translator with its share of the texts and of each option that is a list."""
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        count = len(self._translators)
        shares = [order[start::count] for start in range(count)]
        answers = [None] * len(texts)
        with concurrent.futures.ThreadPoolExecutor(count) as threads:
            results = []
            for device, translator, share in zip(self._devices, self._translators, shares, strict=True):
                part = {k: [v[at] for at in share] if isinstance(v, list) else v for k, v in options.items()}
                call = getattr(translator, method)
                results.append(threads.submit(_on, device, call, [texts[at] for at in share], **part))
            for share, result in zip(shares, results, strict=True):
                for at, answer in zip(share, result.result(), strict=True):
                    answers[at] = answer
        return answers


def _on(device, function, *args, **options):
    with tf.device(device):  # a device scope affects only the current thread
        return function(*args, **options)
