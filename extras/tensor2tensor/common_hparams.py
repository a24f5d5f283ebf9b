"""Mirrors tensor2tensor's layers/common_hparams.py."""

import functools

from t2t_lite.errors import LOGGER
from t2t_lite.extras.autotune.ranged_hparams import RangedHParams as RangedHParams
from t2t_lite.extras.tensor2tensor import names_elsewhere
from t2t_lite.settings.config import HParams
from t2t_lite.settings.tensor2tensor_names import hparam_answer

__getattr__ = names_elsewhere(__name__)


class BasicHParams(HParams):
    """HParams whose `add_hparam` also takes names that are declared here, but not in tensor2tensor's basic set."""

    def add_hparam(self, name, value):
        """Assigns a declared hyperparameter, or declares one; warns if it belongs to tensor2tensor's models alone."""
        if name in self:
            self.set_hparam(name, value)
            return
        super().add_hparam(name, value)
        if answer := hparam_answer(name):
            _warn_once(f"hparam {name}={value} has no effect. {answer}")


@functools.cache
def _warn_once(message):
    LOGGER.warning(message)


def basic_params1() -> HParams:
    """Returns default hyperparameters to start from (for a Transformer, start from `transformer.transformer_base`)."""
    return BasicHParams()
