"""The foreign families: one module of this folder each, with its `FAMILY`."""

import importlib

from t2t_lite.lazy import module_paths

FAMILIES = {  # by model_type
    family.model_type: family
    for family in (importlib.import_module(f"{__name__}.{name}").FAMILY for name in module_paths(__name__))
}


def family_of(model):
    """Returns the Family of a Keras model, or None."""
    of_class = (family for family in FAMILIES.values() if family.model is type(model))
    return next((family for family in of_class if family.matches(model.config)), None)
