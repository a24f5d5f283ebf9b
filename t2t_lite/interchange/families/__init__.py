"""The foreign families: one module of this folder each, with its `FAMILY`."""

import importlib

from t2t_lite.process.lazy import module_paths

FAMILIES = {  # by model_type
    family.model_type: family
    for family in (importlib.import_module(f"{__name__}.{name}").FAMILY for name in module_paths(__name__))
}


def family_of(model, encoders=None):
    """Returns the Family of a Keras model, or None.

    Args:
        model: Keras model.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}, which decide between several families, or None.
    """
    of_class = (family for family in FAMILIES.values() if family.model is type(model))
    families = [family for family in of_class if family.matches(model.config)]
    if encoders:
        families.sort(key=lambda family: bool(family.strange_encoders(model, encoders)))
    return next(iter(families), None)
