"""`t2t-decoder --tune`: combinations of search settings on a dev set, in one table."""

import dataclasses
import logging
import os

from t2t_lite.bin import _decode_files, _decode_lines, _decode_records
from t2t_lite.errors import UserError, counted

_LOGGER = logging.getLogger("t2t_lite")
_METRICS = ("bleu", "chrf", "ter")  # the first says which combination is the best


def tune(flags, settings):
    """Translates the dev set by each combination and prints the table; the best one is named."""
    from t2t_lite.decoding import tuning
    from t2t_lite.evaluation.scores import METRICS

    grid = tuning.DEFAULT_GRID if flags.tune == "true" else flags.tune
    combinations = tuning.parse_grid(grid)
    for combination in combinations:
        dataclasses.replace(settings, **combination).check()
    if settings.is_sampling or flags.mbr:
        raise UserError("--tune: tries settings of the search. Leave sampling_method and --mbr out.")
    errors = _decode_lines.LineErrors(flags)
    translator = _decode_lines.load_translator(flags)
    lines, references, name = _dev_set(flags, settings, translator, errors)
    if not lines:
        raise UserError(f"{name}: no sentences to translate.")
    _LOGGER.info(f"tuning on {counted(len(lines), 'sentence')} of {name}: {counted(len(combinations), 'combination')}")

    def translate(combination, some=lines):
        changed = dataclasses.replace(settings, **combination)
        lines_of = _decode_lines.line_translator(flags, changed, translator, name, errors)
        return [found.text for found in lines_of.translate(some)]

    signatures = []

    def score(outputs):
        points, signatures[:] = _scores(outputs, references)
        return points

    trials = []
    for trial in tuning.tune(translate, score, combinations, lambda combination: translate(combination, lines[:1])):
        trials.append(trial)
        words = [f"{key}={value}" for key, value in (trial.settings | trial.scores).items() if key != "BP"]
        _LOGGER.info(f"{len(trials)} of {len(combinations)}: {', '.join(words)}, {trial.seconds:.1f} s")
    print("\n".join([*signatures, *tuning.table(trials)]))
    best = tuning.best_trial(trials, METRICS[_METRICS[0]])
    print(f"best: --decode_hparams={','.join(f'{key}={value}' for key, value in best.settings.items())}")


def _dev_set(flags, settings, translator, errors):
    """Returns lines, references and what to call them."""
    if not flags.decode_from_file:
        inputs, references, split = _decode_records.read_records(flags, settings, translator)
        return inputs, references, f"the {split} records in {flags.data_dir}"
    lines, name, _ = _decode_files.part_of_file(flags.decode_from_file, settings, errors)
    references, other, _ = _decode_files.part_of_file(flags.decode_reference, settings, None)
    if len(lines) != len(references):
        raise UserError(f"{other} has {counted(len(references), 'line')}, {name} has {len(lines):,}. Expected as many.")
    return lines, references, os.path.basename(name)


def _scores(outputs, references):
    import sacrebleu.metrics

    from t2t_lite.evaluation import scores

    found = scores.corpus_scores(outputs, references, _METRICS)
    points = {scores.METRICS[name]: round(score.score, 2) for name, score in found.items()}
    brevity_penalty = sacrebleu.metrics.BLEU().corpus_score(outputs, [references]).bp
    return points | {"BP": round(brevity_penalty, 3)}, scores.signature_lines(found)
