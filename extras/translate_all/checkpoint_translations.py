"""Translates a file with each checkpoint of a run, and draws the scores."""

import dataclasses
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
from t2t_lite.visualization.drawing import check_picture

_WRITTEN = ("settings.json", "flags.txt")  # endings of the files written next to the translations


@dataclasses.dataclass
class CheckpointTranslations:
    """Translates a file with one checkpoint after another; the model is built and compiled only once.

    Attributes:
        model_dir: path of the folder with the checkpoints.
        source_path, source: path of the file to translate, and its lines, list of str.
        folder: path of the folder for the translations, `<problem>-<step>`, and their settings,
            `<problem>-settings.json`.
        search: dict with beam_size and alpha; if one is missing, the problem's default is used.
        data_dir, usr_dir: paths of the vocabulary's folder and of the user's own folder, if they differ from the run's.
        names: dict with problem, model and hparams_set, which must match the run's.
        command: None, or a user-supplied command that translates: see `decoder_command`.
        references: list of paths of references, which must not be overwritten.
        plot: path of the plot of scores; "" stands for `<problem>-scores.png`, None for no plot.
        problem: name of the problem; None before the first checkpoint.
        tokenization: the tokenization that the run's evaluations use for BLEU; None before the first checkpoint.
        seen, done: number of checkpoints so far, and number of those checkpoints that have a translation.
        error: None, or the error of the last checkpoint that could not be read.

    Raises:
        UserError: `plot` is not a valid path for a picture.
    """

    model_dir: str
    source_path: str
    source: list
    folder: str
    search: dict
    data_dir: str | None = None
    usr_dir: str | None = None
    names: dict = dataclasses.field(default_factory=dict)
    command: str | None = None
    references: list | None = None
    plot: str | None = None

    def __post_init__(self):
        self.problem = self.tokenization = self.error = self._translator = self._config = None
        self.seen = self.done = 0
        if self.plot:
            check_picture("--plot", self.plot)

    def translate(self, checkpoint):
        """Translates with a checkpoint (`StepFile`); returns the translation's path, or None and logs a warning."""
        self.seen += 1
        if not self.problem:
            self._prepare(checkpoint)
        path = self._path(checkpoint.step)
        if files.exists(path):
            self._check_old(path, checkpoint)
            LOGGER.info(f"{path}: already exists")
        elif not files.exists(checkpoint.path + ".index"):
            LOGGER.warning(f"step {checkpoint.step} is skipped, because its checkpoint has been deleted.")
            return None
        elif self.command:
            folders = {"data_dir": self.data_dir, "t2t_usr_dir": self.usr_dir}
            decoder_command.translate(self.command, checkpoint.path, self.source_path, path, self.search, folders)
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
                "source": os.path.basename(self.source_path),
                "bleu_signature": bleu.signature,
                "bleu": rounded(bleu.score),
            }
            log = RunLog(self.model_dir, name="eval.log")
            if not any(same.items() <= line.items() for line in log.read()):
                log.write(**same)
        except (UserError, Failure, OSError, tf.errors.OpError) as error:  # a read-only folder, or a deleted checkpoint
            LOGGER.info(f"{self.model_dir}/eval.log: BLEU was not added: {first_line(error)}")

    def _prepare(self, checkpoint):
        """Checks the folder and the settings with the first checkpoint, then creates the folder. Raises `UserError`."""
        config = read_config_of(checkpoint.path)
        check_names(config, **self.names)
        problem = registry.problem(config["problem"])
        if not self.command:
            check_answered_by(problem, "Translator", checkpoint.path)
        encoders_and_folder(problem, config, self.model_dir, self.data_dir)
        self.problem = config["problem"]
        self.tokenization = tokenization_of_problem(problem, HParams.from_dict(config["hparams"]))
        if self.plot == "":
            self.plot = self._path("scores.png")
        used = {**problem.decode_defaults, **self.search}
        settings = {
            "model_dir": self.model_dir if files.is_remote(self.model_dir) else os.path.abspath(self.model_dir),
            "source_sha256": hashlib.sha256("\n".join(self.source).encode()).hexdigest(),
            **{name: used.get(name, getattr(SearchOptions, name)) for name in ("beam_size", "alpha")},
        }
        noted = self._path("settings.json")
        is_begun = files.exists(noted) and resumable.find(self.folder, resumable.TRANSLATIONS)
        if found := Request(settings, files.read_json(noted) if is_begun else settings, settings).first:
            raise UserError(
                f"--translations_dir={self.folder}: the translations there were made with "
                f"{found.name}={found.there}, but you requested {found.asked}. Choose another folder. If both mean "
                f"the same, delete {noted} instead."
            )
        steps = [file.step for file in resumable.find(self.model_dir, resumable.CHECKPOINTS)]
        files.check_outputs(
            {"--source": self.source_path, "--reference": self.references, "the model's": run_files(self.model_dir)},
            {"--plot": self.plot, "--translations_dir": [self._path(ending) for ending in (*_WRITTEN, *steps)]},
        )
        files.make_folder(self.folder)
        files.check_writable(self.folder)
        files.write_json(noted, settings)
        flags_file = os.path.join(self.model_dir, "flags.txt")
        if files.exists(flags_file):  # as in tensor2tensor, t2t-bleu reads the start of the run from this file's time
            seconds = status(flags_file).modified_ns / 1e9
            files.write_bytes(self._path("flags.txt"), files.read_bytes(flags_file), seconds)

    def _path(self, ending):
        return os.path.join(self.folder, f"{self.problem}-{ending}")

    def _check_old(self, path, checkpoint):
        read_translation(path, self.source_path, len(self.source), "Delete the translation to translate again.")
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
                self._translator, self._config = Translator.load(checkpoint.path, self.data_dir), config
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

        progress = Progress(f"step {checkpoint.step}", f"{unit_of(self._translator.problem)}s", len(self.source))
        settings = DecodeHParams(self._translator.search_options(self.search))
        lines = LineTranslator(self._translator, settings, self.source_path)
        outputs, _ = lines.outputs(self.source, on_progress=progress.add)
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
