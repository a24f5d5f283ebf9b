"""Translates a file with every checkpoint of a run, scores the translations, and prints the best checkpoint.

    t2t-translate-all --model_dir=train/avg --source=dev.en --reference=dev.de
    t2t-translate-all --model_dir=train --source=dev.en --reference=dev.de --min_steps=50000 --wait_minutes=60

Writes files <translations_dir>/<problem>-<step>. Each file gets the modification time of its checkpoint, which t2t-bleu
--translations_dir uses in TensorBoard's curves. Existing files are kept, so a later call resumes. With --reference, the
command also prints a table of scores and draws a plot.
"""

import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._setting_flags import check_score_flags, define_score_flags, ter_options
from t2t_lite.cli.commands import require
from t2t_lite.errors import LOGGER, UserError, counted
from t2t_lite.extras.translate_all import decoder_command
from t2t_lite.settings.ranges import ALPHA, BEAM_SIZE, COUNT, MINUTES
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.visualization.drawing import check_picture


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("model_dir", None, "Folder of checkpoints: a run, or averaged checkpoints.")
    flags.DEFINE_path("source", None, "File to translate, one sentence per line.")
    flags.DEFINE_path("translations_dir", "translations", "Folder for the translations.")
    flags.DEFINE_integer("min_steps", 0, "Skip checkpoints before this step.", limits=COUNT)
    flags.DEFINE_integer("wait_minutes", 0, "Number of minutes to wait for another checkpoint.", limits=MINUTES)
    for name, define, what, limits in (
        ("beam_size", flags.DEFINE_integer, "Beam size of the search; 1 is greedy", BEAM_SIZE),
        ("alpha", flags.DEFINE_float, "Length penalty of the search", ALPHA),
    ):
        define(name, None, f"{what}. Default: the problem's, or {getattr(SearchOptions, name)}.", limits=limits)
    define_score_flags(flags)
    flags.DEFINE_path("plot", None, "Where to draw the scores. Default: <translations_dir>/<problem>-scores.png.")
    flags.DEFINE_string("problem", None, "Name of the problem. Default: the run's.")
    flags.DEFINE_string("model", None, "Name of the model. Default: the run's.")
    flags.DEFINE_string("hparams_set", None, "Name of the hyperparameter set. Default: the run's.")
    flags.DEFINE_path("data_dir", None, "Folder of the vocabulary. Default: the checkpoints' folder.")
    flags.DEFINE_path("t2t_usr_dir", None, "Folder of your own modules. Default: the run's.")
    flags.DEFINE_string(
        "decoder_command",
        decoder_command.DEFAULT,
        "Shell command to run for each checkpoint; {params} is replaced by t2t-decoder's flags. The default "
        "translates in this process, which builds and compiles the model only once.",
    )


def check(flags):
    """Raises `UserError` if a flag is missing or out of range."""
    require(flags, "model_dir", "source", "translations_dir")
    decoder_command.check(flags.decoder_command)
    if flags.plot:
        check_picture("--plot", flags.plot)


def run(flags):
    """Translates with all checkpoints, then scores the translations."""
    from t2t_lite.extras.translate_all.checkpoint_translations import CheckpointTranslations
    from t2t_lite.files import resumable

    source, references = _read(flags)
    translations = CheckpointTranslations(flags, source)
    scored = {}
    for checkpoint in resumable.follow(flags.model_dir, resumable.CHECKPOINTS, flags.min_steps, flags.wait_minutes):
        path = translations.translate(checkpoint)
        if path and references:
            tokenize = flags.tokenization or translations.tokenization
            scores = scored[checkpoint.step] = _score(flags, path, references, tokenize, is_first=not scored)
            if "bleu" in scores:
                translations.note(checkpoint, scores["bleu"])
        elif path:
            print(path, flush=True)
    if translations.error and not translations.done:
        raise translations.error
    if not translations.seen:
        raise UserError(
            f"--model_dir={flags.model_dir}: no checkpoint (model.ckpt-N) from step {flags.min_steps} on. Train first, "
            "wait with --wait_minutes, or reduce --min_steps."
        )
    if scored:
        _show(flags, scored, translations.plot)


def _read(flags):
    """Returns (lines of the source, lines of each reference or None)."""
    from t2t_lite.corpora import wmt_files
    from t2t_lite.evaluation import score_files

    source = score_files.read_lines(flags.source, wmt_files.SOURCE)
    if not flags.reference:
        return source, None
    check_score_flags(flags)
    references = score_files.read_references(flags.reference)
    if len(references[0]) != len(source):
        raise UserError(
            f"--reference={flags.reference[0]} has {counted(len(references[0]), 'line')}, but {flags.source} has "
            f"{len(source)}. Expected the same number."
        )
    return source, references


def _score(flags, path, references, tokenize, is_first):
    from t2t_lite.evaluation import score_files, scores

    translation = score_files.read_translation(path, flags.reference[0], len(references[0]))
    if not is_first:  # the first translation's warnings also concern the references
        scores.warn_of_texts(translation, references, {}, path)
    settings = flags.metrics, tokenize, ter_options(flags), path if is_first else None
    by_metric = scores.corpus_scores(translation, references, *settings)
    shown = (f"{scores.METRICS[name]} = {score.score:.2f}" for name, score in by_metric.items())
    LOGGER.info(f"{path}: {', '.join(shown)}")
    return by_metric


def _show(flags, scored, plot):
    """Prints and draws the scores, and prints the best checkpoint: see `best_of`."""
    from t2t_lite.cli.console import table
    from t2t_lite.evaluation import scores
    from t2t_lite.extras.translate_all.checkpoint_translations import draw_step_scores

    scored = dict(sorted(scored.items()))
    best, names = best_of(scored), [scores.METRICS[name] for name in flags.metrics]
    rows = [[str(step), *(f"{score.score:.2f}" for score in by_metric.values())] for step, by_metric in scored.items()]
    print("\n".join([*scores.signature_lines(scored[best]), *table([["step", *names], *rows])]))
    where = os.path.join(flags.model_dir, f"model.ckpt-{best}")
    print(f"best: step {best}, {names[0]} = {scored[best][flags.metrics[0]].score:.2f}: {where}")
    points = {
        title: [(step, by_metric[name].score) for step, by_metric in scored.items()]
        for title, name in zip(names, flags.metrics, strict=True)
    }
    draw_step_scores(points, best, plot, flags.model_dir)
    print(f"plot: {plot}")


def best_of(scored):
    """Returns the key of the best scores. Ties are broken by the next metric, and finally by the first key.

    Args:
        scored: {key: {name: `Score`}} as returned by `corpus_scores`, all with the same metrics.
    """

    def merits(key):
        return [-score.score if name == "ter" else score.score for name, score in scored[key].items()]

    return max(scored, key=merits)


main = _app.command("t2t-translate-all", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
