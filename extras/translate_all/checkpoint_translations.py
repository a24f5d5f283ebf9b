"""Translates a file with each checkpoint of a run, and draws the scores."""

import hashlib
import os

import tensorflow as tf

from t2t_lite import files, registry
from t2t_lite.cli.console import Progress
from t2t_lite.errors import LOGGER, Failure, UserError, first_line
from t2t_lite.evaluation.score_files import read_translation
from t2t_lite.evaluation.tokenizations import tokenization_of_problem
from t2t_lite.extras.translate_all import decoder_command
from t2t_lite.files import resumable
from t2t_lite.files.file_system import status
from t2t_lite.files.request import Request
from t2t_lite.runs.directory import check_names
from t2t_lite.runs.locating import encoders_and_folder, read_config_of, run_files
from t2t_lite.runs.log import RunLog, rounded
from t2t_lite.settings.config import HParams
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.tasks.task import check_answered_by, unit_of
from t2t_lite.visualization import drawing

_WRITTEN = ("settings.json", "flags.txt")  # endings of the files written next to the translations


class CheckpointTranslations:
    """Translates a file with one checkpoint after another; the model is built and compiled only once.

    Args:
        flags: the flags of t2t-translate-all.
        source: list of str, the lines of the file to translate.

    Attributes:
        plot: path of the plot of scores; None for no plot.
        tokenization: the tokenization that the run's evaluations use for BLEU; None before the first checkpoint.
        seen, done: number of checkpoints so far, and number of those checkpoints that have a translation.
        error: None, or the error of the last checkpoint that could not be read.
    """

    def __init__(self, flags, source):
        self._flags, self._source, self.plot = flags, source, flags.plot
        self._model_dir, self._folder = flags.model_dir, flags.translations_dir
        # Of a setting that is missing, the problem's default is used.
        self._search = {name: flags[name].value for name in ("beam_size", "alpha") if flags[name].value is not None}
        self._command = None if flags.decoder_command == decoder_command.DEFAULT else flags.decoder_command
        self.tokenization = self.error = self._problem = self._translator = self._config = None
        self.seen = self.done = 0

    def translate(self, checkpoint):
        """Translates with a checkpoint (`StepFile`); returns the translation's path, or None and logs a warning."""
        self.seen += 1
        if not self._problem:
            self._prepare(checkpoint)
        path = self._path(checkpoint.step)
        if files.exists(path):
            self._check_old(path, checkpoint)
            LOGGER.info(f"{path}: already exists")
        elif not files.exists(checkpoint.path + ".index"):
            LOGGER.warning(f"step {checkpoint.step} is skipped, because its checkpoint has been deleted.")
            return None
        elif self._command:
            folders = {"data_dir": self._flags.data_dir, "t2t_usr_dir": self._flags.t2t_usr_dir}
            decoder_command.translate(self._command, checkpoint.path, self._flags.source, path, self._search, folders)
            if not files.exists(path):
                LOGGER.warning(f"{path}: --decoder_command did not write the file. A later call will score the file.")
                return None
        elif not self._load(checkpoint):
            return None
        else:
            self._translate(path, checkpoint)
        self.done += 1
        return path

    def note(self, checkpoint, bleu):
        """Adds BLEU, a `Score`, to the run's eval.log unless it is there. An export's model card reads this log.

        The BLEU of a translation that is older than the checkpoint, and so probably of another run, is not added.
        """
        try:
            if self._is_old(checkpoint):
                return
            same = {
                "event": "translation",
                "step": checkpoint.step,
                "checkpoint_time": status(f"{checkpoint.path}.index").modified_ns // 10**9,
                "source": os.path.basename(self._flags.source),
                "bleu_signature": bleu.signature,
                "bleu": rounded(bleu.score),
            }
            log = RunLog(self._model_dir, name="eval.log")
            if not any(same.items() <= line.items() for line in log.read()):
                log.write(**same)
        except (UserError, Failure, OSError, tf.errors.OpError) as error:  # a read-only folder, or a deleted checkpoint
            LOGGER.info(f"{self._model_dir}/eval.log: BLEU was not added: {first_line(error)}")

    def _prepare(self, checkpoint):
        """Checks the folder and the settings with the first checkpoint, then creates the folder. Raises `UserError`."""
        config = read_config_of(checkpoint.path)
        check_names(config, **{name: self._flags[name].value for name in ("problem", "model", "hparams_set")})
        problem = registry.problem(config["problem"])
        if not self._command:
            check_answered_by(problem, "Translator", checkpoint.path)
        encoders_and_folder(problem, config, self._model_dir, self._flags.data_dir)
        self._problem = config["problem"]
        self.tokenization = tokenization_of_problem(problem, HParams.from_dict(config["hparams"]))
        if self._flags.reference and not self.plot:
            self.plot = self._path("scores.png")
        used = {**problem.decode_defaults, **self._search}
        settings = {
            "model_dir": self._model_dir if files.is_remote(self._model_dir) else os.path.abspath(self._model_dir),
            "source_sha256": hashlib.sha256("\n".join(self._source).encode()).hexdigest(),
            **{name: used.get(name, getattr(SearchOptions, name)) for name in ("beam_size", "alpha")},
        }
        noted = self._path("settings.json")
        is_begun = files.exists(noted) and resumable.find(self._folder, resumable.TRANSLATIONS)
        if change := Request(settings, files.read_json(noted) if is_begun else settings, settings).first:
            raise UserError(
                f"--translations_dir={self._folder}: the translations there were made with "
                f"{change.name}={change.stored}, but you requested {change.requested}. Choose another folder. If both "
                f"mean the same, delete {noted} instead."
            )
        steps = [file.step for file in resumable.find(self._model_dir, resumable.CHECKPOINTS)]
        texts = {"--source": self._flags.source, "--reference": self._flags.reference}
        files.check_outputs(
            texts | {"the model's": run_files(self._model_dir)},
            {"--plot": self.plot, "--translations_dir": [self._path(ending) for ending in (*_WRITTEN, *steps)]},
        )
        files.make_folder(self._folder)
        files.check_writable(self._folder)
        files.write_json(noted, settings)
        flags_file = os.path.join(self._model_dir, "flags.txt")
        if files.exists(flags_file):  # as in tensor2tensor, t2t-bleu reads the start of the run from this file's time
            seconds = status(flags_file).modified_ns / 1e9
            files.write_bytes(self._path("flags.txt"), files.read_bytes(flags_file), seconds)

    def _path(self, ending):
        return os.path.join(self._folder, f"{self._problem}-{ending}")

    def _check_old(self, path, checkpoint):
        read_translation(path, self._flags.source, len(self._source), "Delete the translation to translate again.")
        if self._is_old(checkpoint):
            LOGGER.warning(f"{path}: older than its checkpoint. Delete the file to translate again.")

    def _is_old(self, checkpoint):
        return status(self._path(checkpoint.step)).modified_ns / 1e9 < checkpoint.seconds - 1

    def _load(self, checkpoint):
        """Loads a checkpoint's weights into the translator. Returns whether they could be read."""
        from t2t_lite.decoding.translator import Translator
        from t2t_lite.runs.opening import restore_weights
        from t2t_lite.training.distribution import gpus_as_needed

        try:
            if (config := read_config_of(checkpoint.path)) != self._config:  # the first one, or that of a new run
                gpus_as_needed()  # leaves GPU memory to a running trainer
                self._translator, self._config = Translator.load(checkpoint.path, self._flags.data_dir), config
            else:
                restore_weights(checkpoint.path, self._translator.model)
        except UserError as error:
            self.error = error
            LOGGER.warning(f"step {checkpoint.step} is skipped: {error}")
            return False
        return True

    def _translate(self, path, checkpoint):
        from t2t_lite.decoding.command.decode_hparams import DecodeHParams
        from t2t_lite.decoding.command.lines import LineTranslator

        progress = Progress(f"step {checkpoint.step}", f"{unit_of(self._translator.problem)}s", len(self._source))
        settings = DecodeHParams(self._translator.search_options(self._search))
        lines = LineTranslator(self._translator, settings, self._flags.source)
        outputs, _ = lines.outputs(self._source, on_progress=progress.add)
        progress.done()
        files.write_bytes(path, "".join(line + "\n" for line in outputs).encode(), checkpoint.seconds)
        LOGGER.info(f"written: {path}")


def draw_step_scores(scores, best_step, path, title=""):
    """Plots each score against the steps.

    Args:
        scores: {name of the score: list of (step, value)}.
        best_step: int, the step to mark with a star.
        path: str, path of the picture: .png, .svg or .pdf.
        title: str.
    """
    figure = drawing.new_figure(5.5 * len(scores), 4.5)
    for number, (name, points) in enumerate(scores.items()):
        axes, color = figure.add_subplot(1, len(scores), number + 1), drawing.color(number)
        steps, values = zip(*sorted(points), strict=True)
        axes.plot(steps, values, "o-", color=color, markersize=4)
        best = dict(points)[best_step]
        axes.plot([best_step], [best], "*", color=color, markersize=14, label=f"step {best_step:,}: {best:.2f}")
        drawing.style_axes(axes, "step", name)
        axes.legend(frameon=False)
    figure.suptitle(title, parse_math=False)
    drawing.write_picture(path, figure)
