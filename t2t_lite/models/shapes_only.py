"""Models whose weights have shapes alone: to ask about, before any memory is allocated for them."""

import concurrent.futures

import keras

from t2t_lite.models.fine_tuning import fine_tune
from t2t_lite.models.sequence_model import SequenceModel, call_on_ones


def shapes_only(model_class, hparams, vocab_size, target_vocab_size=None, features=SequenceModel.features):
    """Makes a registered model whose weights have shapes but no values: at once, and in no memory.

    A model that can't be made so, or is only built when it is called on data, is made with its values.

    Args:
        model_class: a registered class with `from_hparams`.
        hparams: HParams.
        vocab_size: int, ids of the inputs.
        target_vocab_size: int; None: shared with the inputs.
        features: {feature: rank} that a model without `features` is called on.

    Raises:
        UserError: a hyperparameter without meaning for the model.
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

    # Keras keeps a list of variables without values, to initialize when the thread's next scope ends. This thread ends
    # before.
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        try:
            return thread.submit(make_shapes).result()
        except Exception:  # a mistake in the hyperparameters is raised again by the next line, anything else is not
            return make()
