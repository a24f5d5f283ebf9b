"""Trained models for other programs."""

from t2t_lite.export.saved_model import export_saved_model

__all__ = ["export_saved_model"]
