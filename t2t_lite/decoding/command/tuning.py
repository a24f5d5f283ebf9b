"""Tries every combination of a grid of search settings on a dev set."""

import dataclasses
import itertools
import os
import time

from t2t_lite.cli import console
from t2t_lite.data.problem import FILE_TAGS
from t2t_lite.decoding.command.decode_files import part_of_file
from t2t_lite.decoding.command.decode_hparams import DEFAULT_GRID
from t2t_lite.decoding.command.decode_records import read_records
from t2t_lite.errors import LOGGER, UserError, counted, located
from t2t_lite.evaluation import scores
from t2t_lite.evaluation.tokenizations import target_language, ter_options_of
from t2t_lite.settings.ranges import settings_of
from t2t_lite.settings.search_options import SearchOptions

_METRICS = ("bleu", "chrf", "ter")  # the first metric selects the best combination
_NAMES = ("beam_size", "alpha", "extra_length", "length_penalty")


@dataclasses.dataclass(frozen=True)
class GridTrial:
    """The result of one combination of settings, a row of the table.

    Attributes:
        settings: dict, the `SearchOptions` that were tried.
        scores: dict, name -> float.
        seconds: float, time spent translating.
    """

    settings: dict
    scores: dict
    seconds: float


def parse_grid(text, where="--tune"):
    """Parses `beam_size=1,4;alpha=0,0.6` (semicolons may be spaces) into a list of dicts, one per combination.

    Alpha and the length penalty have no effect with a beam size of 1, so combinations that differ only in these are
    returned only once.

    Raises:
        UserError: wrong syntax, an unknown name, a repeated name, or a value of the wrong type or out of range.
    """
    axes, kinds = {}, settings_of(SearchOptions)
    for part in text.replace(";", " ").split():
        name, equals, values = part.partition("=")
        if not equals or name not in _NAMES:
            raise UserError(
                f"{where}: {part!r}: expected name=value,value for names from {', '.join(_NAMES)}, such as "
                f"{DEFAULT_GRID}"
            )
        if name in axes:
            raise UserError(f"{where}: {name} is given twice.")
        with located(where):
            axes[name] = list(dict.fromkeys(kinds[name].typed(value) for value in values.split(",")))
    if not axes:
        raise UserError(f"{where}: the grid is empty. Expected a grid such as {DEFAULT_GRID}")
    combinations = []
    for values in itertools.product(*axes.values()):
        settings = dict(zip(axes, values, strict=True))
        with located(where):
            SearchOptions(**settings)
        if settings.get("beam_size") == 1:
            settings.pop("alpha", None)
            settings.pop("length_penalty", None)
        if settings not in combinations:
            combinations.append(settings)
    return combinations


def tune_search(job, grid, split, source="", reference=""):
    """Translates a dev set with each combination of a grid, logs the scores, and returns the lines to print.

    Args:
        job: DecodingJob.
        grid: str, see `parse_grid`.
        split: DatasetSplit of the records, if no file is given.
        source, reference: paths of the dev set's two sides.

    Raises:
        UserError: an invalid grid, a missing dev set, or settings that do not apply to a search.
    """
    combinations = parse_grid(grid)
    for combination in combinations:
        job.settings.searching(**combination).check()
    if job.settings.search.sampling or job.mbr:
        raise UserError("--tune tries only settings of beam search. Remove sampling_method and --mbr.")
    lines, references, name = _dev_set(job, split, source, reference)
    if not lines:
        raise UserError(f"{name}: contains no sentences to translate.")
    LOGGER.info(f"tuning on {counted(len(lines), 'sentence')} of {name}: {counted(len(combinations), 'combination')}")

    trials, tokenize, ter = [], job.bleu_tokenization, ter_options_of(target_language(job.translator.problem))
    for combination in combinations:
        lines_of = job.with_settings(job.settings.searching(**combination)).lines_of(name)
        lines_of.answer(lines[:1])  # does one-time work such as tracing, which is not timed
        start = time.monotonic()
        outputs = [answer.text for answer in lines_of.answer(lines)]
        seconds = time.monotonic() - start
        # Show warnings only once, since most of them are about the references, which do not change.
        by_metric = scores.corpus_scores(outputs, references, _METRICS, tokenize, ter, None if trials else name)
        points = {scores.METRICS[metric]: round(score.score, 2) for metric, score in by_metric.items()}
        brevity_penalty = scores.make_metric("bleu", tokenize).corpus_score(outputs, [references]).bp
        trials.append(GridTrial(combination, points | {"BP": round(brevity_penalty, 3)}, seconds))
        words = [f"{key}={value}" for key, value in (combination | points).items()]
        LOGGER.info(f"{len(trials)} of {len(combinations)}: {', '.join(words)}, {seconds:.1f} s")
    best = best_trial(trials)
    chosen = ",".join(f"{key}={value}" for key, value in best.settings.items())
    return [*scores.signature_lines(by_metric), *table(trials), f"best: --decode_hparams={chosen}"]


def _dev_set(job, split, source, reference):
    """Returns the lines of the dev set, their references, and the dev set's name in messages."""
    if not source:
        return *read_records(job, split), f"the {FILE_TAGS[split]} records in {job.data_dir}"
    part = part_of_file(source, job.settings, job.errors)
    return part.lines, part.lines_beside("--decode_reference", reference, job.settings), os.path.basename(part.name)


def best_trial(trials):
    """Returns the `GridTrial` with the highest BLEU. Ties are broken by the highest chrF, then by the smallest beam."""

    def merits(trial):
        bleu, chrf = (round(trial.scores[scores.METRICS[metric]], 2) for metric in ("bleu", "chrf"))
        return bleu, chrf, -trial.settings.get("beam_size", 0)

    return max(trials, key=merits)


def table(trials):
    """Formats the trials as a table, and returns its lines."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.settings))
    metrics = list(trials[0].scores)
    rows = [[*names, *metrics, "seconds"]]
    for trial in trials:
        settings = [str(trial.settings.get(name, "-")) for name in names]
        scores = [f"{trial.scores[name]:.3f}" if name == "BP" else f"{trial.scores[name]:.2f}" for name in metrics]
        rows.append([*settings, *scores, f"{trial.seconds:.1f}"])
    return console.table(rows)
