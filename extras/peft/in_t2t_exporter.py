"""--format=peft exports a LoRA adapter for PEFT, without its base model:

t2t-exporter --output_dir=tuned --format=peft --export_dir=adapter
"""

from t2t_lite.cli.commands import Mode


def define_flags(flags):
    """Declares no flags."""


def run(flags, answerer, folder, settings, longest, card):
    """Exports; returns the path."""
    from t2t_lite.extras.peft.adapter_export import export_adapter

    return export_adapter(answerer, folder)


MODES = {"peft": Mode("--format=peft", run=run)}
