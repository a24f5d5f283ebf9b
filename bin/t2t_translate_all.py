"""Translates a text with every checkpoint of a run, scores all of them, and names the best.

    t2t-translate-all --model_dir=train/avg --source=dev.en --reference=dev.de
    t2t-translate-all --model_dir=train --source=dev.en --reference=dev.de --min_steps=50000 --wait_minutes=60

Writes <translations_dir>/<problem>-<step>, each with its checkpoint's time, which t2t-bleu --translations_dir puts into
TensorBoard. What is there already is not translated again: a later call goes on. With --reference it prints a table of
scores and draws it.
"""

import hashlib
import logging
import os
import sys

from t2t_lite.bin import _app, _decoder_command, _scoring
from t2t_lite.errors import UserError, counted
from t2t_lite.ranges import ALPHA, BEAM_SIZE, COUNT, MINUTES

_LOGGER = logging.getLogger("t2t_lite")


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("model_dir", None, "Folder of checkpoints: a run's, or of averages.")
    flags.DEFINE_path("source", None, "What to translate, one sentence a line.")
    flags.DEFINE_path("translations_dir", "translations", "Folder for the translations.")
    flags.DEFINE_integer("min_steps", 0, "Leave out checkpoints of fewer steps.", limits=COUNT)
    flags.DEFINE_integer("wait_minutes", 0, "Keep waiting this long for another checkpoint.", limits=MINUTES)
    flags.DEFINE_integer(
        "beam_size", None, "Beam of the search; 1 is greedy. Default: 4, or the problem's own.", limits=BEAM_SIZE
    )
    flags.DEFINE_float("alpha", None, "Length penalty of the search. Default: 0.6, or the problem's own.", limits=ALPHA)
    _scoring.define_flags(flags)
    flags.DEFINE_path("plot", None, "Where to draw the scores; default: <translations_dir>/<problem>-scores.png.")
    flags.DEFINE_string("problem", None, "Name of the problem; the run knows it.")
    flags.DEFINE_string("model", None, "Name of the model; the run knows it.")
    flags.DEFINE_string("hparams_set", None, "Name of the hyperparameter set; the run knows it.")
    flags.DEFINE_path("data_dir", None, "Where the vocabulary is, if it is not beside the checkpoints.")
    flags.DEFINE_path("t2t_usr_dir", None, "Your own folder, where it is not where the run had it.")
    flags.DEFINE_string(
        "decoder_command",
        _decoder_command.DEFAULT,
        "Another command, run by the shell for each checkpoint; {params} stands for t2t-decoder's flags. The default "
        "translates in this process, which loads and compiles once.",
    )


def check(flags):
    """Raises `UserError` for flags that are missing or out of range."""
    _app.require(flags, "model_dir", "source", "translations_dir")
    _decoder_command.check(flags.decoder_command)


def run(flags):
    """Translates, then scores."""
    from t2t_lite.files import step_files
    from t2t_lite.training.distribution import gpus_as_needed

    gpus_as_needed()  # a trainer may need the rest of their memory
    source, references = _scoring.read_lines(flags.source), None
    if flags.reference:
        _scoring.check_flags(flags)
        references = _scoring.read_references(flags.reference)
        if len(references[0]) != len(source):
            raise UserError(
                f"--reference={flags.reference[0]}: {counted(len(references[0]), 'line')}, {flags.source} has "
                f"{len(source)}. Expected as many."
            )
    if flags.plot:
        _check_plot(flags.plot)
    checkpoints, scored = _Checkpoints(flags, source), {}
    for checkpoint in step_files.follow(flags.model_dir, step_files.CHECKPOINTS, flags.min_steps, flags.wait_minutes):
        path = checkpoints.translate(checkpoint)
        if path and references:
            scored[checkpoint.step] = _score(flags, path, references)
            _note(flags, checkpoint, scored[checkpoint.step])
        elif path:
            print(path, flush=True)
    if checkpoints.error and not checkpoints.done:
        raise checkpoints.error
    if not checkpoints.seen:
        raise UserError(
            f"--model_dir={flags.model_dir}: holds no checkpoint (model.ckpt-N) from step {flags.min_steps} on. Train "
            "there first, wait by --wait_minutes, or set a smaller --min_steps."
        )
    if scored:
        _show(flags, scored, flags.plot or checkpoints.plot_path(checkpoints.problem))


class _Checkpoints:
    """Makes the translation of each checkpoint; the model is built, traced and compiled once for all of them.

    Attributes:
        problem: its name; None before the first checkpoint.
        seen, done: how many checkpoints there were, and how many of them have a translation.
        error: None, or why the last one that could not be read could not.
    """

    def __init__(self, flags, source):
        self._flags, self._source, self._translator = flags, source, None
        self.problem, self.seen, self.done, self.error = None, 0, 0, None

    def translate(self, checkpoint):
        """Returns the path of a checkpoint's translation, or None where there is none and a warning says why."""
        import tensorflow as tf

        self.seen += 1
        if not self.problem:
            self._prepare(checkpoint.path)
        path = self._path(self.problem, checkpoint.step)
        if tf.io.gfile.exists(path):
            self._check_old(path, checkpoint)
            _LOGGER.info(f"{path}: is there already")
        elif not tf.io.gfile.exists(checkpoint.path + ".index"):
            _LOGGER.warning(f"step {checkpoint.step} is left out: its checkpoint was deleted meanwhile.")
            return None
        elif self._flags.decoder_command != _decoder_command.DEFAULT:
            self._translate_by_command(path, checkpoint)
            if not tf.io.gfile.exists(path):
                _LOGGER.warning(f"{path}: not there yet, though --decoder_command ended. Scored by a later call.")
                return None
        elif not self._load(checkpoint):
            return None
        else:
            self._translate(path, checkpoint)
        self.done += 1
        return path

    def _prepare(self, path):
        """Makes the folder; before that, checks all that can be wrong with it, or with what the flags say."""
        import tensorflow as tf

        from t2t_lite import files, registry
        from t2t_lite.bin import _trained
        from t2t_lite.files import step_files
        from t2t_lite.runs.opening import encoders_of, read_config_of

        flags = self._flags
        config = read_config_of(path)
        _trained.check_names(flags, config)
        encoders_of(registry.problem(config["problem"]), config, flags.model_dir, flags.data_dir)
        problem, folder = config["problem"], flags.translations_dir
        used = {**registry.problem(problem).decode_defaults, **_options(flags)}
        settings = {
            "model_dir": os.path.abspath(flags.model_dir) if "://" not in flags.model_dir else flags.model_dir,
            "source_sha256": hashlib.sha256("\n".join(self._source).encode()).hexdigest(),
            "beam_size": used.get("beam_size", 4),
            "alpha": used.get("alpha", 0.6),
        }
        noted = self._path(problem, "settings.json")
        if tf.io.gfile.exists(noted) and step_files.find(folder, step_files.TRANSLATIONS):
            before = files.read_json(noted)
            for name, value in settings.items():
                if before.get(name) != value:
                    raise UserError(
                        f"--translations_dir={folder}: its translations were made with {name}={before.get(name)}, now "
                        f"it is {value}. Choose another folder; or delete {noted} if they are the same."
                    )
        plot = (flags.plot or self.plot_path(problem)) if flags.reference else None
        texts = {"--source": flags.source, "--reference": flags.reference}
        outputs = [noted, self._path(problem, "flags.txt")]
        outputs += [self._path(problem, file.step) for file in step_files.find(flags.model_dir, step_files.CHECKPOINTS)]
        files.check_outputs(
            texts | {"the model's": _trained.run_files(flags.model_dir)},
            {"--plot": plot, "--translations_dir": outputs},
        )
        files.make_folder(folder)
        files.check_writable(folder)
        files.write_json(noted, settings)
        flags_file = os.path.join(flags.model_dir, "flags.txt")
        if tf.io.gfile.exists(flags_file):  # its time is the start of the run, as in tensor2tensor
            data, status = files.read_bytes(flags_file), tf.io.gfile.stat(flags_file)
            _write(self._path(problem, "flags.txt"), data, status.mtime_nsec / 1e9)
        self.problem = problem

    def plot_path(self, problem):
        """Returns where scores are drawn if --plot does not say it."""
        return self._path(problem, "scores.png")

    def _path(self, problem, ending):
        return os.path.join(self._flags.translations_dir, f"{problem}-{ending}")

    def _check_old(self, path, checkpoint):
        import tensorflow as tf

        _scoring.read_translation(path, self._flags.source, len(self._source), "Delete it to have it made again.")
        if tf.io.gfile.stat(path).mtime_nsec / 1e9 < checkpoint.seconds - 1:
            _LOGGER.warning(f"{path}: is older than its checkpoint. Delete it to have it made again.")

    def _load(self, checkpoint):
        """Gives the translator a checkpoint's weights; returns False for one that cannot be read."""
        from t2t_lite.decoding.translator import Translator
        from t2t_lite.runs.opening import restore_weights

        try:
            if self._translator is None:
                self._translator = Translator.load(checkpoint.path, self._flags.data_dir)
            else:
                restore_weights(checkpoint.path, self._translator.model)
        except UserError as error:
            self.error = error
            _LOGGER.warning(f"step {checkpoint.step} is left out: {error}")
            return False
        return True

    def _translate(self, path, checkpoint):
        from t2t_lite.console import Progress
        from t2t_lite.decoding.text_files import as_field

        progress = Progress(f"step {checkpoint.step}", "sentences", len(self._source))
        found = self._translator.translate(self._source, on_progress=progress.add, **_options(self._flags))
        progress.done()
        if cut := [str(number) for number, translation in enumerate(found, 1) if translation.truncated]:
            shown = ", ".join(cut[:10]) + (", …" if len(cut) > 10 else "")
            _LOGGER.warning(f"{self._flags.source}: too long and cut off: line {shown}")
        lines = [as_field(translation.text) + "\n" for translation in found]
        _write(path, "".join(lines).encode(), checkpoint.seconds)
        _LOGGER.info(f"written: {path}")

    def _translate_by_command(self, path, checkpoint):
        flags = self._flags
        folders = {"data_dir": flags.data_dir, "t2t_usr_dir": flags.t2t_usr_dir}
        _decoder_command.translate(flags.decoder_command, checkpoint.path, flags.source, path, _options(flags), folders)


def _options(flags):
    given = {"beam_size": flags.beam_size, "alpha": flags.alpha}
    return {name: value for name, value in given.items() if value is not None}


def _write(path, data, seconds):
    """Writes a file that has its time as soon as it has its name."""
    import tensorflow as tf

    from t2t_lite import files

    unfinished = f"{path}.unfinished"
    with files.removed_on_failure(unfinished):
        files.write_bytes(unfinished, data)
        if os.path.exists(unfinished):  # not on remote file systems
            os.utime(unfinished, (seconds, seconds))
        tf.io.gfile.rename(unfinished, path, overwrite=True)


def _check_plot(path):
    """Raises `UserError` where no picture can be written."""
    import tensorflow as tf

    from t2t_lite import files

    folder = os.path.dirname(path) or "."
    files.make_folder(folder)
    files.check_writable(folder)
    if tf.io.gfile.isdir(path):
        raise UserError(f"--plot={path}: is a folder. Expected a file to write, such as {path.rstrip('/')}/scores.png.")


def _score(flags, path, references):
    from t2t_lite.evaluation import scores

    translation = _scoring.read_translation(path, flags.reference[0], len(references[0]))
    _scoring.warn_of_text(translation, flags.metrics, path)
    found = scores.corpus_scores(translation, references, flags.metrics, flags.tokenization)
    shown = zip(_scoring.titles(found), found.values(), strict=True)
    _LOGGER.info(f"{path}: {', '.join(f'{title} = {score.score:.2f}' for title, score in shown)}")
    return found


def _note(flags, checkpoint, found):
    """Writes a BLEU to eval.log beside the checkpoint, once: the card of an export of it says so."""
    import tensorflow as tf

    from t2t_lite.runs.log import RunLog

    if "bleu" not in found:
        return
    try:
        same = {
            "event": "translation",
            "step": checkpoint.step,
            "checkpoint_time": tf.io.gfile.stat(f"{checkpoint.path}.index").mtime_nsec // 10**9,
            "source": os.path.basename(flags.source),
            "bleu_signature": found["bleu"].signature,
        }
        log = RunLog(flags.model_dir, name="eval.log")
        if not any(same.items() <= line.items() for line in log.read()):
            log.write(**same, bleu=found["bleu"].score)
    except (tf.errors.OpError, OSError) as error:  # a folder of somebody else's, or a checkpoint that is gone
        _LOGGER.info(f"{flags.model_dir}/eval.log: the BLEU is not noted: {str(error).splitlines()[0]}")


def _show(flags, scored, plot):
    """Prints the table, draws it, and names the best by the first metric; of equal ones the earliest."""
    from t2t_lite.evaluation.scores import better
    from t2t_lite.visualization.step_scores import draw_step_scores

    first, best = flags.metrics[0], min(scored)
    for step in sorted(scored):
        if better(first, scored[step][first].score, scored[best][first].score):
            best = step
    names = _scoring.titles(flags.metrics)
    rows = [[str(step), *(f"{score.score:.2f}" for score in found.values())] for step, found in sorted(scored.items())]
    print("\n".join([*_scoring.signature_lines(scored[best]), *_scoring.table([["step", *names], *rows])]))
    checkpoint = os.path.join(flags.model_dir, f"model.ckpt-{best}")
    print(f"best: step {best}, {names[0]} = {scored[best][first].score:.2f}: {checkpoint}")
    points = {
        title: [(step, found[name].score) for step, found in scored.items()]
        for title, name in zip(names, flags.metrics, strict=True)
    }
    draw_step_scores(points, best, plot, flags.model_dir)
    print(f"plot: {plot}")


def main(argv=None):
    """Runs the command; returns its exit status."""
    return _app.main("t2t-translate-all", define_flags, run, argv, check=check)


if __name__ == "__main__":
    sys.exit(main())
