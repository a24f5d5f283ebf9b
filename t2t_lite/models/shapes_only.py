"""Creates models whose weights have shapes but no values."""

import concurrent.futures

import keras

from t2t_lite.models.fine_tuning import fine_tune
from t2t_lite.models.sequence_model import SequenceModel, call_on_ones


def shapes_only(model_class, hparams, vocab_size, target_vocab_size=None, features=SequenceModel.features):
    """Creates a registered model whose weights have shapes but no values; this takes hardly any time or memory.

    If a model does not support this, or is only built when it is called on data, its weights do have values.

    Args:
        model_class: a registered class with `from_hparams`.
        hparams: HParams.
        vocab_size: int, the vocabulary size of the inputs.
        target_vocab_size: int, the vocabulary size of the targets. Defaults to one vocabulary for both.
        features: {feature: rank}, the inputs for calling a model that has no attribute `features`.

    Raises:
        UserError: if the model does not support a hyperparameter.
    """

    def make():
        model = model_class.from_hparams(hparams, vocab_size, target_vocab_size)
        if not model.built or not model.weights:
            call_on_ones(model, features)
        fine_tune(model, hparams)
        return model

    def make_shapes():
        with keras.StatelessScope(initialize_variables=False):
            return make()

    # Keras would initialize these variables when the next scope in the same thread ends. Therefore, the scope runs in a
    # thread that has no next scope.
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        try:
            return thread.submit(make_shapes).result()
        except Exception:  # invalid hyperparameters raise their error again below
            return make()
