"""Imports a model that another package has trained as a run, for t2t-decoder, t2t-trainer and t2t-exporter.

    t2t-importer --from=hugging_face --path=opus-mt-en-de --output_dir=train

The new checkpoint's path is printed. docs/importing.md says what can be imported.
"""

import sys

from t2t_lite.bin import _app
from t2t_lite.cli import commands
from t2t_lite.cli.commands import check_mode, require
from t2t_lite.errors import UserError


def modes():
    """Returns {what has trained the model: Mode}, each of an extra."""
    return commands.modes("t2t-importer", {})


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_enum("from", None, [*modes()], "What has trained the model.")
    flags.DEFINE_path(
        "path",
        None,
        "The model: a checkpoint, …/model.ckpt-N, or a folder: of hugging_face that of a MarianMTModel, a GPT-2, "
        "a BERT or one of their relatives.",
    )
    flags.DEFINE_list(
        "languages", [], "Languages of inputs and targets, such as en,de; of hugging_face where its tokenizer has none."
    )
    flags.DEFINE_path("output_dir", None, "Folder of the new run; it must not exist yet.")
    _app.define_usr_dir_flag(flags)


def check(flags):
    """Raises `UserError` for mistakes that can be seen without imports."""
    if not modes():
        raise UserError("t2t-importer: no extra that imports models is installed. They are folders of t2t_lite/extras.")
    require(flags, "from", "path", "output_dir")
    mode = modes()[flags["from"].value]
    check_mode(flags, mode, modes())
    if mode.check:
        mode.check(flags)


def run(flags):
    """Imports, and prints the path of the checkpoint."""
    print(modes()[flags["from"].value].run(flags))


main = _app.command("t2t-importer", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
