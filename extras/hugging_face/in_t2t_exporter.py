"""--format=hugging_face exports a folder for Hugging Face Transformers (docs/conversion.md):

t2t-exporter --output_dir=train --format=hugging_face --export_dir=hf
"""

from t2t_lite.cli.commands import Mode


def define_flags(flags):
    """Declares no additional flags."""


def run(flags, answerer, folder, settings, longest, card):
    """Exports a trained model and returns the path."""
    from t2t_lite.extras.hugging_face.hugging_face import export_hugging_face

    return export_hugging_face(answerer, folder, **settings, **card)


MODES = {"hugging_face": Mode("--format=hugging_face", run=run, keeps={"Translator": ("beam_size", "alpha")})}
