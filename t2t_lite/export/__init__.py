"""Exports of trained models to other programs. The functions are imported on first use: they need TensorFlow."""

from t2t_lite.lazy import lazy_names

_MODULES = {
    "export_ctranslate2": "t2t_lite.export.ctranslate2",
    "export_hugging_face": "t2t_lite.interchange.hugging_face",
    "export_saved_model": "t2t_lite.export.saved_model",
    "import_hugging_face": "t2t_lite.interchange.hugging_face_import",
}
__all__ = sorted(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
