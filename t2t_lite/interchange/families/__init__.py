"""The foreign families: one module each, found in this folder, with its `FAMILY`."""

import importlib
import pkgutil

FAMILIES = {  # by model_type
    family.model_type: family
    for module in pkgutil.iter_modules(__path__)
    if (family := getattr(importlib.import_module(f"{__name__}.{module.name}"), "FAMILY", None))
}


def family_of(model):
    """Returns the Family of a Keras model, or None."""
    of_class = (family for family in FAMILIES.values() if family.model is type(model))
    return next((family for family in of_class if family.holds(model.config)), None)
