"""A user's own model with a setting of its own."""

from typing import ClassVar

import keras

from t2t_lite import registry
from t2t_lite.models import Transformer
from t2t_lite.ranges import setting


@registry.register_model("own_model")
@keras.saving.register_keras_serializable("tests")
class OwnModel(Transformer):
    """A Transformer that is told a window."""

    HPARAMS: ClassVar = {
        "window": setting(8, 1, 64, argument="window", fixed=True, meaning="Positions of the window."),
        "note": setting("", meaning="What the user wants to remember."),
    }

    def __init__(self, *sizes, window=8, **kwargs):
        super().__init__(*sizes, **kwargs)
        self.config["window"] = window
