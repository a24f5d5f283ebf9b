"""Which flags of t2t-decoder say what it reads, and which of them go together."""

import os

from t2t_lite import streams
from t2t_lite.assignments import parse_assignments
from t2t_lite.bin import _app, _trained
from t2t_lite.decoding.jobs.decode_hparams import DEFAULT_GRID
from t2t_lite.errors import UserError

INPUTS = ("decode_from_file", "decode_reference", "prefix_file", "score_file")
ONLY_OF_FILES = ("decode_reference", "prefix_file", "alignments_file")
_NOT_OF_STREAMS = ("decode_shards", "keep_timestamp")  # what is read once, and as it comes, has no parts


def wants_records(flags):
    """Returns whether a problem's records are asked for."""
    return bool(flags.eval_use_test_set or (flags.problem and flags.data_dir))


def check(flags):
    """Raises `UserError` for mistakes that can be seen without imports."""
    _trained.check(flags)
    flags.tune = {"true": DEFAULT_GRID, "false": ""}.get(flags.tune, flags.tune)
    inputs = [f"--{name}" for name in ("decode_interactive", "decode_from_file", "score_file") if flags[name].value]
    if flags.tune:
        has_file = bool(flags.decode_from_file)
        if has_file != bool(flags.decode_reference) or not (has_file or flags.data_dir):
            raise UserError("--tune: needs a dev set: --decode_from_file and --decode_reference, or --data_dir.")
    elif flags.eval_use_test_set and (flags.decode_from_file or flags.decode_interactive or flags.score_file):
        raise UserError("--eval_use_test_set: is about the problem's records. Leave it out, or --decode_from_file.")
    elif flags.eval_use_test_set and not flags.data_dir:
        raise UserError("--eval_use_test_set: needs --data_dir, where the records are.")
    elif not (inputs or wants_records(flags)) and streams.is_terminal():
        raise UserError(
            "missing --decode_from_file (a text file, or - for standard input), --decode_interactive, or --problem and "
            "--data_dir, whose records are decoded."
        )
    if len(inputs) > 1:
        raise UserError(f"{' and '.join(inputs)}: each says what to read. Leave all but one out.")
    unread = _given(flags, *ONLY_OF_FILES, "mbr", "n_best_format", "long_input", "split_sentences")
    if flags.score_file and unread:
        raise UserError(f"{', '.join(unread)}: only of translations. Leave out, or --score_file.")
    if flags.score_file and flags.keep_timestamp and flags.decode_to_file in ("", "-"):
        raise UserError(
            "--keep_timestamp: standard output has no time. Name a file, --decode_to_file, or leave it out."
        )
    for name in INPUTS:
        path = flags[name].value
        shared = flags.decode_shards > 1 or "shards" in flags.decode_hparams
        if path and path != "-" and "://" not in path and not os.path.exists(path) and not shared:
            raise UserError(f"--{name}={path}: no such file. Check the path.")
    of_records = not inputs and wants_records(flags)  # whose outputs get names that end in .decodes
    _app.refuse_packed(flags, *(["decode_to_file"] * (not of_records)), "alignments_file")
    _check_features(flags)
    unread = _given(flags, "decode_to_file", "alignments_file", "n_best_format", "keep_timestamp")
    if flags.tune and unread:
        raise UserError(f"{', '.join(unread)}: not with --tune, which prints a table and writes no outputs. Leave out.")
    if flags.tune and flags.prefix_file:
        raise UserError("--prefix_file: not with --tune, which compares free outputs. Leave one of them out.")
    if not (flags.tune or flags.score_file) and flags.decode_from_file in ("", "-"):
        _check_unread(flags, of_records)
    if flags.tokenization and not (of_records or flags.decode_reference or flags.tune or flags.mbr == "bleu"):
        raise UserError("--tokenization: of BLEU, which needs --decode_reference, --tune or --mbr=bleu. Leave it out.")
    if flags.worker_id >= flags.decode_shards:
        raise UserError(f"--worker_id={flags.worker_id}: expected less than --decode_shards={flags.decode_shards}.")


def _given(flags, *names):
    """Returns those flags, such as --mbr, that ask for something: whose values are not the defaults."""
    return [f"--{name}" for name in names if flags[name].value != flags[name].default]


def _check_unread(flags, of_records):
    """Refuses what is for files alone, where records, a stream or typed lines are read."""
    if of_records:
        names = [name for name in ONLY_OF_FILES if name != "alignments_file"]
    else:
        names = [*ONLY_OF_FILES, *_NOT_OF_STREAMS]
        if parse_assignments(flags.decode_hparams, "--decode_hparams").get("shards", "1") != "1":
            raise UserError("--decode_hparams: shards: needs --decode_from_file, a file.")
    if lost := _given(flags, *names):
        raise UserError(f"{lost[0]}: needs --decode_from_file, a file.")
    if of_records and flags.decode_to_file == "-":
        raise UserError("--decode_to_file=-: outputs of records go to files. Name one, or leave it out.")
    if flags.decode_interactive and flags.decode_to_file not in ("", "-"):
        raise UserError("--decode_to_file: --decode_interactive answers on standard output. Leave it out.")


def _check_features(flags):
    lost = [f"--{name}" for name in _trained.FEATURES_FLAGS if flags[name].present]
    if lost and not flags.features_file:
        raise UserError(f"{', '.join(lost)}: only of features. Add --features_file, or leave out.")
    if flags.features_file and (flags.decode_from_file in ("", "-") or flags.decode_to_file):
        raise UserError("--features_file: needs --decode_from_file, a file, and no --decode_to_file.")
    if flags.features_file == "-":
        raise UserError("--features_file=-: arrays are written to a file, such as features.npz. Name one.")
