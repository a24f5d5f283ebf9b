"""The foreign families of the core: one module of this folder each, which registers it."""

from t2t_lite import registry


def families():
    """Returns the registered Families, in the order of their names; imports them all."""
    return [registry.family(model_type) for model_type in registry.list_families()]


def family_of(model, encoders=None):
    """Returns the Family of a Keras model, or None.

    Args:
        model: Keras model.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}, which decide between several families, or None.
    """
    found = [family for family in families() if family.model is type(model) and family.matches(model.config)]
    if encoders:
        found.sort(key=lambda family: bool(family.strange_encoders(model, encoders)))
    return next(iter(found), None)
