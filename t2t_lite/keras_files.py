"""Lets Keras open `.keras` files that hold classes of this package, which are imported only when a file asks for one.

Keras finds a class by the name under which it is registered, and that happens when its module is imported. Importing
them all with the package would import Keras with it: seconds, for commands that may only print their help. So what is
registered at first is a stand-in, as soon as Keras itself is there; the module puts the class in its place.
"""

import functools
import importlib
import importlib.abc
import sys

MODULES = {
    "t2t_lite.layers": (
        "Dropout", "FeedForward", "LSTMStack", "LayerMix", "LayerNormalization", "LearnedPositionEmbedding",
        "LeftRelativeAttention",
        "MultiHeadAttention", "RelativeAttention", "Residual", "RestrictedAttention", "SinusoidalPositionEmbedding",
        "TokenEmbedding", "TransformerDecoderLayer", "TransformerEncoderLayer", "TransformerStack",
    ),
    "t2t_lite.layers.dropout": ("ScopedSeed",),
    "t2t_lite.layers.encoder_heads": ("ClassHead", "MaskedIdsHead", "SpanHead"),
    "t2t_lite.layers.quantization": ("PartPolicies",),
    "t2t_lite.models.lstm_lm": ("LSTMLanguageModel",),
    "t2t_lite.models.transformer": ("Transformer",),
    "t2t_lite.models.transformer_encoder": ("TransformerEncoder",),
    "t2t_lite.models.transformer_lm": ("TransformerLM",),
    "t2t_lite.training.optimization.adafactor": ("Adafactor",),
    "t2t_lite.training.optimization.lamb": ("Lamb",),
    "t2t_lite.training.losses": ("MaskedAccuracy", "SmoothedCrossEntropy"),
    "t2t_lite.training.optimization.optimizers": ("Adam",),
    "t2t_lite.training.optimization.schedules": ("ProductSchedule",),
}  # fmt: skip


class _StandIn:
    """Makes what its class would, which it imports for that."""

    def __init__(self, module, name):
        self.module = module
        self.name = name

    def from_config(self, config):
        """Returns an instance of the class."""
        return getattr(importlib.import_module(self.module), self.name).from_config(config)


def register():
    """Registers stand-ins, now or as soon as Keras has been imported."""
    if "keras" in sys.modules and hasattr(sys.modules["keras"], "saving"):
        _register_stand_ins()
    else:
        sys.meta_path.insert(0, _AfterKeras())


def _register_stand_ins():
    objects = sys.modules["keras"].saving.get_custom_objects()
    for module, names in MODULES.items():
        for name in names:
            objects.setdefault(f"t2t_lite>{name}", _StandIn(module, name))


class _AfterKeras(importlib.abc.MetaPathFinder):
    """Lets Python find Keras as ever, and registers the stand-ins when it has been imported."""

    def find_spec(self, fullname, path=None, target=None):
        """Returns the specification of Keras; None for every other module."""
        if fullname != "keras":
            return None
        found = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = functools.partial(self._import, spec.loader.exec_module)
        return spec

    def _import(self, exec_module, module):
        exec_module(module)
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        _register_stand_ins()
