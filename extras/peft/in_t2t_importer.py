"""--from=peft imports a LoRA adapter of PEFT for a base model that t2t_lite imported or trained:

t2t-importer --from=peft --path=adapter --base=bert --output_dir=tuned
"""

from t2t_lite.cli.commands import Mode


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_path("base", None, "For --from=peft: the run of the model that the adapter belongs to.")
    flags.DEFINE_bool(
        "merge",
        False,
        "For --from=peft: add LoRA to the kernels. By default, it is kept separate and can be trained further.",
    )


def run(flags):
    """Imports; returns the path of the checkpoint."""
    from t2t_lite.files import folders

    folders.check_new(flags.output_dir)
    from t2t_lite.extras.peft.adapter_import import import_adapter

    return import_adapter(flags.path, flags.base, flags.output_dir, merge=flags.merge)


MODES = {"peft": Mode("--from=peft", ("base", "merge"), ("base",), run=run)}
