"""Exports trained models to other programs. The functions are imported lazily, since they need TensorFlow. Functions
of extras, such as `export_hugging_face`, are imported when they are used.
"""

from t2t_lite.process.lazy import lazy_names
from t2t_lite.process.registering_modules import names_in_extras

__getattr__, __dir__, __all__ = lazy_names(__name__, names_in_extras(__name__, "register_export_format"))
