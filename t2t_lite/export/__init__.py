"""Trained models for other programs, and theirs."""

from t2t_lite.export.ctranslate2 import export_ctranslate2
from t2t_lite.export.hugging_face import export_hugging_face
from t2t_lite.export.hugging_face_import import import_hugging_face
from t2t_lite.export.saved_model import export_saved_model

__all__ = ["export_ctranslate2", "export_hugging_face", "export_saved_model", "import_hugging_face"]
