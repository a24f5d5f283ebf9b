"""The modes of t2t-decoder, and the flags of each."""

from t2t_lite import registry
from t2t_lite.bin import _app, _trained
from t2t_lite.cli import console
from t2t_lite.cli.commands import Mode, check_mode
from t2t_lite.decoding.command.decode_hparams import DEFAULT_GRID
from t2t_lite.errors import UserError
from t2t_lite.settings.config import parse_assignments

INPUTS = ("decode_from_file", "decode_reference", "prefix_file", "score_file")
_LONG = ("long_input", "split_sentences")
_SEARCH = (*_LONG, "mbr", "n_best_format")
TOLD = {name: registry.teller(name) for name in registry.list_tellers()}  # what some models tell beside outputs
_BESIDE = ("alignments_file", *(teller.flag for teller in TOLD.values()))
_OUTPUT = ("decode_to_file", *_BESIDE, "keep_timestamp")
_FEATURES = ("features_file", *_trained.FEATURES_FLAGS)
MODES = {
    "tune": Mode("--tune", ("tune", "decode_from_file", "decode_reference", "eval_use_test_set", *_LONG)),
    "decode_interactive": Mode("--decode_interactive", ("decode_interactive", *_SEARCH)),
    "score_file": Mode("--score_file", ("score_file", "decode_to_file", "keep_timestamp")),
    "features_file": Mode("--features_file", ("decode_from_file", "long_input", *_FEATURES), ("decode_from_file",)),
    "decode_from_file": Mode("--decode_from_file", (*INPUTS[:3], *_OUTPUT, *_SEARCH)),
    "records": Mode("a problem's records", ("eval_use_test_set", *_OUTPUT, *_SEARCH), ("data_dir",)),
    "stream": Mode("standard input", ("decode_from_file", "decode_to_file", *_SEARCH)),
}


def chosen_mode(flags):
    """Returns the key in `MODES` of the mode that the flags choose."""
    if names := [name for name in MODES if name in flags and flags[name].value]:
        return "stream" if names[0] == "decode_from_file" and flags.decode_from_file == "-" else names[0]
    return "records" if flags.eval_use_test_set or (flags.problem and flags.data_dir) else "stream"


def check(flags):
    """Raises `UserError` for mistakes that can be seen without imports."""
    _trained.check(flags)
    flags.tune = {"true": DEFAULT_GRID, "false": ""}.get(flags.tune, flags.tune)
    mode, source, output = chosen_mode(flags), flags.decode_from_file, flags.decode_to_file
    if mode == "stream" and not source and console.is_terminal():
        raise UserError(
            "missing --decode_from_file (a text file, or - for standard input), --decode_interactive, or --problem and "
            "--data_dir, whose records are decoded."
        )
    check_mode(flags, MODES[mode], MODES)
    if mode == "tune" and (bool(source) != bool(flags.decode_reference) or not (source or flags.data_dir)):
        raise UserError("--tune: needs a dev set: --decode_from_file and --decode_reference, or --data_dir.")
    if mode == "score_file" and flags.keep_timestamp and output in ("", "-"):
        raise UserError(
            "--keep_timestamp: standard output has no time. Name a file, --decode_to_file, or leave it out."
        )
    if mode == "records" and output == "-":
        raise UserError("--decode_to_file=-: outputs of records go to files. Name one, or leave it out.")
    if mode == "features_file" and "-" in (source, flags.features_file):
        raise UserError("--features_file=-: arrays are written to a file, such as features.npz, of a text in a file.")
    _check_shards(flags, mode)
    if flags.decode_shards == 1 and "shards" not in flags.decode_hparams:
        _app.require_files(flags, *(name for name in INPUTS if flags[name].value != "-"))
    # The outputs of records get names that end in .decodes, in a folder that is made for them.
    output = ["decode_to_file"] if mode != "records" else []
    _app.require_folders(flags, *output, *_BESIDE, "features_file")
    _app.refuse_packed(flags, *output, *_BESIDE)
    if flags.tokenization and not (mode in ("records", "tune") or flags.decode_reference or flags.mbr == "bleu"):
        raise UserError("--tokenization: of BLEU, which needs --decode_reference, --tune or --mbr=bleu. Leave it out.")


def _check_shards(flags, mode):
    """Refuses parts of an input that can be read only once, and a part that does not exist."""
    if mode in ("stream", "decode_interactive"):
        shards = parse_assignments(flags.decode_hparams, "--decode_hparams").get("shards", "1")
        for name, value in (("--decode_shards", str(flags.decode_shards)), ("--decode_hparams: shards", shards)):
            if value != "1":
                raise UserError(f"{name}: needs --decode_from_file, a file.")
    if flags.worker_id >= flags.decode_shards:
        raise UserError(f"--worker_id={flags.worker_id}: expected less than --decode_shards={flags.decode_shards}.")
