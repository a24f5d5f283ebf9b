"""Exports a trained model, or an ensemble, as a SavedModel with text inputs, for TensorFlow Serving.

    t2t-exporter --output_dir=train --export_dir=export
    t2t-exporter --checkpoint_path=one/model.ckpt-1000,other/model.ckpt-2000 --export_dir=export

The export is written to the next numbered folder, starting with export/1, and the path of this folder is printed.
docs/serving.md describes the export. Exports in other formats are written to a new folder.
"""

import os
import shlex
import sys

from t2t_lite.bin import _app, _trained
from t2t_lite.cli import commands
from t2t_lite.cli.commands import Mode, check_mode
from t2t_lite.cli.flags import as_typed
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.settings.ranges import COMPUTE_DTYPES


def modes():
    """Returns the command's modes, including those of extras, as {format: Mode}."""
    return commands.modes("t2t-exporter", _MODES)


def define_flags(flags):
    """Declares the command's flags."""
    _trained.define_flags(flags)
    flags.DEFINE_path(
        "export_dir",
        None,
        "Folder for the numbered exports. Default: export, next to the checkpoint. For other formats, a new folder; "
        "default: named after the format, next to the checkpoint.",
    )
    flags.DEFINE_enum("format", "saved_model", [*modes()], "What to write.")
    flags.DEFINE_string(
        "decode_hparams",
        "",
        "Settings to fix in the export, as name=value,…. Every model has max_input_size (512); models that generate "
        "text also have beam_size, alpha, extra_length, length_penalty and ends; language models also have the "
        "sampling and repetition settings. The format hugging_face keeps only beam_size and alpha of a translation "
        "model; other formats keep no settings.",
    )
    flags.DEFINE_enum(
        "weights_dtype", "float32", COMPUTE_DTYPES,
        "Type of the weights. With bfloat16, which is for CPUs that support it, the export is half the size and "
        "computes in bfloat16.",
    )  # fmt: skip
    _trained.define_features_flags(flags)
    flags.no_effect("as_text", "exports are always written as saved_model.pb", is_bool=True)
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for mistakes that can be found without heavy imports."""
    _trained.check(flags)
    check_mode(flags, modes()[flags.format], modes())


def _check_settings(flags, settings, fixed, effective):
    """Rejects decoding settings that no export keeps, and warns about settings that the requested format ignores."""
    from t2t_lite.decoding.command import flag_checks
    from t2t_lite.settings.config import parse_assignments

    assigned = parse_assignments(flags.decode_hparams, "--decode_hparams")
    if others := [name for name in settings.changed(assigned) if name not in fixed]:
        raise UserError(
            f"--decode_hparams: {', '.join(others)}: an export does not keep them. Expected {', '.join(fixed)}; "
            "docs/serving.md lists the signatures, such as n_best."
        )
    if ignored := [name for name in assigned if name in fixed and name not in effective]:
        LOGGER.warning(f"--decode_hparams: {', '.join(ignored)}: no effect with --format={flags.format}.")
    flag_checks.check(flag_checks.DecodeRequest(settings=settings, text=flags.decode_hparams))


def run(flags):
    """Exports the model and prints the path."""
    from t2t_lite import registry
    from t2t_lite.decoding.command.decode_hparams import SEARCH_NAMES, DecodeHParams
    from t2t_lite.export import by_task
    from t2t_lite.files.folders import check_kinds, check_new
    from t2t_lite.runs.locating import export_of

    runs = _trained.find(flags)
    settings = DecodeHParams.parse(flags.decode_hparams, defaults=runs[0].problem.decode_defaults)
    by_task.check(runs[0].problem, runs[0].checkpoint)
    task = registry.task_of(runs[0].problem)
    signatures = by_task.signatures_of(task)
    fixed = [*(SEARCH_NAMES[name] for name in signatures.SETTINGS), "max_input_size"]
    is_saved_model = flags.format == "saved_model"
    names = signatures.SETTINGS if is_saved_model else modes()[flags.format].keeps.get(task.answered_by, ())
    _check_settings(flags, settings, fixed, fixed if is_saved_model else names)
    features = _trained.features_options(flags)
    if features and not signatures.HAS_FEATURES:
        name = runs[0].problem.full_name
        raise UserError(f"--features_{next(iter(features))}: {name} is not an encoder. Remove the flag.")
    made_of = export_of(runs[0].checkpoint)  # if the model is itself an export, the new export is written next to it
    folder = os.path.dirname(made_of or runs[0].checkpoint)
    if is_saved_model:
        folder = os.path.abspath(folder) if made_of else os.path.join(folder, "export")
    else:
        folder = os.path.join(folder, flags.format)
    folder = flags.export_dir or folder
    if is_saved_model:
        check_kinds(folder)
    else:
        check_new(folder)
    # Use the dtype of the export, even if this machine is slow at computing in that dtype.
    dtype = "bfloat16" if flags.weights_dtype == "bfloat16" else None
    answerer = by_task.load(runs, flags.data_dir, dtype)
    words = [as_typed(name, flags[name].value) for name in flags if flags[name].present]
    card = {"license": flags.license if "license" in flags else "", "command": shlex.join(["t2t-exporter", *words])}
    names = {name: getattr(settings.search, name) for name in names} | features
    longest = None if settings.max_input_size == -1 else settings.max_input_size
    print(modes()[flags.format].run(flags, answerer, folder, names, longest, card))


def _saved_model(flags, answerer, folder, settings, longest, card):
    from t2t_lite.export.saved_model import export_saved_model

    return export_saved_model(answerer, folder, **settings, **card, max_input_length=longest)


_MODES = {"saved_model": Mode("--format=saved_model", ("weights_dtype", *_trained.FEATURES_FLAGS), run=_saved_model)}


main = _app.command("t2t-exporter", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
