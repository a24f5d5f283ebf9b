"""Converts a model trained by another package to a run for t2t-decoder, t2t-trainer and t2t-exporter.

    t2t-importer --from=hugging_face --path=opus-mt-en-de --output_dir=train

The path of the new checkpoint is printed. docs/importing.md lists the models that can be imported.
"""

import sys

from t2t_lite.bin import _app
from t2t_lite.cli import commands
from t2t_lite.cli.commands import check_mode, require
from t2t_lite.errors import UserError


def modes():
    """Returns the importers of extras, as {package that trained the model: Mode}."""
    return commands.modes("t2t-importer", {})


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_enum("from", None, [*modes()], "The package that trained the model.")
    flags.DEFINE_path(
        "path", None, "The model: a checkpoint, …/model.ckpt-N, or a folder. With --from=hugging_face, the folder of a "
        "MarianMTModel, GPT-2, BERT or a model derived from them.",
    )  # fmt: skip
    flags.DEFINE_list(
        "languages",
        [],
        "Languages of inputs and targets, such as en,de. With --from=hugging_face, only needed if the tokenizer "
        "does not name them.",
    )
    flags.DEFINE_path("output_dir", None, "Folder of the new run; it must not exist yet.")
    _app.define_usr_dir_flag(flags)


def check(flags):
    """Raises `UserError` for mistakes that can be found without heavy imports."""
    if not modes():
        raise UserError(
            "t2t-importer: no extra that imports models is installed. Extras are folders in t2t_lite/extras."
        )
    require(flags, "from", "path", "output_dir")
    mode = modes()[flags["from"].value]
    check_mode(flags, mode, modes())
    if mode.check:
        mode.check(flags)


def run(flags):
    """Imports the model and prints the path of the checkpoint."""
    print(modes()[flags["from"].value].run(flags))


main = _app.command("t2t-importer", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
