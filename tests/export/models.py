"""Models for exports, without training or a run's folder."""

import contextlib

import keras
import numpy as np
import pytest

from t2t_lite.decoding.translator import Translator
from t2t_lite.export.signatures import TextSignatures
from t2t_lite.models import Transformer
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import ByteTextEncoder

SMALL = {"hidden_size": 8, "filter_size": 12, "num_heads": 2, "num_encoder_layers": 2, "num_decoder_layers": 1}


def random_transformer(vocab_size, seed=3, **options):
    """Returns a Transformer none of whose weights is at a value that hides a mistake."""
    keras.utils.set_random_seed(seed)
    model = Transformer(vocab_size, **{**SMALL, **options})
    model.build()
    rng = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        if len(weight.shape) == 1:
            weight.assign_add(rng.normal(scale=0.1, size=weight.shape).astype("float32"))
    return model


def translator_of(encoders=None, **options):
    """Returns a Translator of such a model; by default of bytes."""
    encoder = ByteTextEncoder()
    encoders = encoders or {"inputs": encoder, "targets": encoder}
    return Translator(random_transformer(encoders["inputs"].vocab_size, **options), encoders, HParams())


@contextlib.contextmanager
def without_signatures(*names):
    """Context in which exports of translations lack some signatures, which tests of something else need not trace."""
    functions, warmup = TextSignatures.functions, TextSignatures.warmup
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            TextSignatures, "functions", lambda self: {k: f for k, f in functions(self).items() if k not in names}
        )
        patch.setattr(TextSignatures, "warmup", lambda self: [call for call in warmup(self) if call[0] not in names])
        yield
