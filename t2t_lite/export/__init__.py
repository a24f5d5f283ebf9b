"""Trained models for other programs."""

from t2t_lite.export.ctranslate2 import export_ctranslate2
from t2t_lite.export.saved_model import export_saved_model

__all__ = ["export_ctranslate2", "export_saved_model"]
