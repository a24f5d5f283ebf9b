"""Exports of trained models to other programs.

The functions are imported on first use, because clients of a server do not need TensorFlow.
"""

import importlib

_MODULES = {
    "export_ctranslate2": "export.ctranslate2",
    "export_hugging_face": "interchange.hugging_face",
    "export_saved_model": "export.saved_model",
    "import_hugging_face": "interchange.hugging_face_import",
}
__all__ = sorted(_MODULES)


def __getattr__(name):
    if name in _MODULES:
        return getattr(importlib.import_module(f"t2t_lite.{_MODULES[name]}"), name)
    raise AttributeError(f"module 't2t_lite.export' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_MODULES])
