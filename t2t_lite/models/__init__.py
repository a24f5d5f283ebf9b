"""The models, registered under their names for `--model`. Models from `extras` are imported on first use."""

from t2t_lite.process.lazy import lazy_names
from t2t_lite.process.registering_modules import names_in_extras

__getattr__, __dir__, __all__ = lazy_names(__name__, names_in_extras(__name__, "register_model"))
