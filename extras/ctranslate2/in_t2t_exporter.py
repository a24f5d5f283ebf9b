"""--format=ctranslate2 exports to CTranslate2, for example for int8 inference on CPUs (docs/extras/ctranslate2.md).
Needs: pip install 't2t_lite[ctranslate2]'.

    t2t-exporter --output_dir=train --format=ctranslate2 --quantization=int8 --export_dir=ct2
"""

from t2t_lite.cli.commands import Mode
from t2t_lite.extras.ctranslate2.quantizations import QUANTIZATIONS


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_enum("quantization", None, QUANTIZATIONS, "Type of stored weights in CTranslate2. Default: float32.")


def run(flags, answerer, folder, settings, longest, card):
    """Exports a trained model and returns the path."""
    from t2t_lite.extras.ctranslate2.ctranslate2 import export_ctranslate2

    return export_ctranslate2(answerer, folder, flags.quantization or "float32", **card)


MODES = {"ctranslate2": Mode("--format=ctranslate2", ("quantization",), run=run)}
