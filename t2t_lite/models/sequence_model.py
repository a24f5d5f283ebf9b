"""The base class of all models that map a dict of ids to logits, with masks, shapes and checks for Keras."""

import inspect
import os
import types
from typing import Self

import keras
from keras import ops

import t2t_lite
from t2t_lite.errors import UserError
from t2t_lite.layers.context import mean_cost
from t2t_lite.layers.quantization import check_plain_weights
from t2t_lite.models.arguments import (
    constructor_arguments,
    constructor_parameters,
    in_hparams_words,
    settings_without_effect,
)
from t2t_lite.models.encoding import accepts_symbols
from t2t_lite.models.exported_model import ExportedModel, SettingsInFiles
from t2t_lite.models.fine_tuning import enable_lora, fine_tune, merge_lora
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.settings.config import HParams
from t2t_lite.settings.reserved_names import COSTS, RESERVED


class SequenceModel(SettingsInFiles, ExportedModel):
    """Base class of models that map a dict of int ids, "inputs" [B, S] and "targets" [B, T], to target logits.

    The logits, float32 [B, T, target_vocab_size], have the mask of the targets, so that Keras' losses and metrics
    ignore padding (id 0). A model may return further outputs for training: see `t2t_lite.models.outputs.named_outputs`.
    Such a model overrides `compute_mask` and `compute_output_spec`.

    The commands use `stacks`, `token_embeddings`, `softmax` and `config` to describe a model and to handle its weights.
    All four attributes are optional. Without them, `--describe` does not estimate memory, `save_run` needs the
    hyperparameters, and `--warm_start_from` needs the same vocabulary.

    A model may also define the following two methods. `extras/baselines/kermit.py` is an example.

        corrupt(batch, seeds, hparams)            a class method that samples all `features` (the inputs and labels of
                                                  the model) from a batch of {"inputs", "targets"}, int32 [B, length],
                                                  in stateless TensorFlow code: see `Problem.corrupt`
        search(inputs, limit, max_length=None)    decodes non-autoregressively, and returns (ids [B, 1, T],
                                                  scores [B, 1], ended [B, 1]) and more: see `beam_search`

    Attributes:
        HPARAMS: dict of the settings that only this model has, {name: `ranges.setting(…)`}. The hparams sets of the
            model include these settings through `HParams.of_model`.
        IDLE: names of hyperparameters that a base class uses but this model does not. Setting them is an error.
        features: {feature: rank} of the input dict, where the rank is 2 for [B, length] and 1 for [B]. A subclass may
            have other features.
        vocab_size, target_vocab_size: int, the vocabulary sizes of inputs and targets, which a subclass sets.
        config: dict of the constructor's arguments if they can be converted to hyperparameters, otherwise None.
        softmax: the `TokenEmbedding` that computes the logits of "targets", or None if a different layer computes them.
        predicted_share: float, the fraction of positions that have logits, used to estimate costs.
        context_length: int, the number of earlier positions that each layer sees through the state in training.
    """

    IDLE = ()
    features = types.MappingProxyType({"inputs": 2, "targets": 2})
    config = None
    predicted_share = 1.0
    context_length = 0

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "encode" in vars(cls):
            cls.encode = accepts_symbols(cls.encode)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.softmax = None  # with PyTorch, a class attribute would hide the layer of an instance

    @property
    def needed_features(self):
        """The features that a call reads, {feature: rank}; all other `features` are labels, which may be missing."""
        return self.features

    def initial_state(self, rows, training=False):
        """Returns the state before the beginning of a text, or None if the model does not carry a state between
        batches.

        A model that overrides this method has a hyperparameter `segment_length` in its `HPARAMS`, and is trained and
        evaluated on consecutive segments of `segment_length` ids. `call` reads "targets" [rows, segment_length],
        "before" [rows] (the id before each segment, or 0 at the beginning of a text) and "state". `call` returns
        {"targets": logits, "state": the new state, with the same structure and shapes}. Without "state" in the input,
        the model starts without a state and need not return a state.

        Args:
            rows: int, the number of rows in a batch.
            training: bool. The state may be larger in evaluation, as set by one of the model's hyperparameters whose
                names begin with `eval_`. t2t-eval may change these hyperparameters.

        Returns:
            A structure of tensors, whose first axis has size `rows`.
        """
        return None

    def stacks(self):
        """Returns {feature: `TransformerStack`}, the stack that runs over the positions of each feature.

        If the layers of a stack have a `cross_attention`, they attend to the positions of "inputs".
        """
        return {}

    def token_embeddings(self):
        """Returns {feature: `TokenEmbedding`} for the features' ids; two features may share an embedding."""
        return {}

    def head_weights(self):
        """Returns the weights of the prediction head, which may be missing in a model fine-tuned from this model."""
        return []

    def build_if_needed(self):
        """Creates all weights unless they exist. Methods that may run before the first call of the model call this.

        `build` must not be called again during a call of the model, in which weights are copies in the compute dtype.
        With PyTorch, Keras would mistake these copies for the model's parameters, whose gradients Keras clears before a
        step.
        """
        if not self.built:
            self.build()

    def __call__(self, inputs, **kwargs):
        """Calls the model. Raises `ValueError` if `inputs` is not a valid dict: see `check_inputs`."""
        inputs = self.whole_ids(inputs)
        self.check_inputs(inputs)
        return super().__call__(inputs, **kwargs)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Makes Keras' `fit` build the model on one replica's batch under a distribution strategy.

        Keras itself would build the model on the mean of the replicas' batches, which has float64 ids and cannot be
        computed if replicas have different numbers of rows.
        """
        strategy = self._distribute_strategy
        if iterator is not None and strategy is not None:
            *_, batches = next(iter(iterator))
            data_batch = keras.tree.map_structure(lambda x: strategy.experimental_local_results(x)[0], next(batches))
        super()._maybe_symbolic_build(data_batch=data_batch)

    def _make_function(self, step_function, *args, **kwargs):
        """Creates the function that Keras runs per step; in TensorFlow, one for each combination of ranks in a batch.

        Losses and metrics need the ranks. A single function would lose ranks that change, as the rank of
        `sample_weight` may change from one `fit` to the next.
        """
        if keras.backend.backend() != "tensorflow":
            return super()._make_function(step_function, *args, **kwargs)
        import tensorflow as tf

        functions = {}

        def function(iterator):
            if not hasattr(iterator, "element_spec"):  # `train_on_batch` and others pass an iterator over one batch
                iterator = list(iterator)
            leaves = tf.nest.flatten(getattr(iterator, "element_spec", iterator), expand_composites=True)
            ranks = tuple(tf.TensorShape(getattr(leaf, "shape", None)).rank for leaf in leaves)
            if ranks not in functions:
                functions[ranks] = super(SequenceModel, self)._make_function(step_function, *args, **kwargs)
            return functions[ranks](iterator)

        return function

    def fit(self, *args, **kwargs):
        """Trains: see `keras.Model.fit`. Raises `ValueError` if `class_weight` is given and labels are not [batch]."""
        self._check_class_weight(super().fit, args, kwargs)
        return super().fit(*args, **kwargs)

    def train_on_batch(self, *args, **kwargs):
        """Trains: see `keras.Model.train_on_batch`. Raises `ValueError` like `fit`."""
        self._check_class_weight(super().train_on_batch, args, kwargs)
        return super().train_on_batch(*args, **kwargs)

    fit.__wrapped__, train_on_batch.__wrapped__ = keras.Model.fit, keras.Model.train_on_batch  # for the signatures

    def _check_class_weight(self, method, args, kwargs):
        """Raises `ValueError` if `class_weight` is given with two-axis labels, which Keras takes for one-hot labels."""
        if inspect.signature(method).bind(*args, **kwargs).arguments.get("class_weight") is None:
            return
        features = {f: keras.Input((None,) * (rank - 1), dtype="int32") for f, rank in self.features.items()}
        if any(len(logits.shape) > 2 for logits in keras.tree.flatten(self.compute_output_spec(features))):
            raise ValueError(
                f"{type(self).__name__}: `class_weight` needs labels [batch], one class per row, but the labels are "
                "[batch, length]. Expected `sample_weight` [batch, length], such as weights[labels]."
            )

    def compute_mask(self, inputs, mask=None):
        """Returns bool [B, T], True where a target is not padding."""
        return ops.not_equal(inputs["targets"], 0)

    def compute_output_shape(self, input_shape):
        """Returns the shapes of the outputs for a dict of input shapes."""
        inputs = {name: keras.KerasTensor(shape, dtype="int32") for name, shape in input_shape.items()}
        return keras.tree.map_structure(lambda output: output.shape, self.compute_output_spec(inputs))

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic logits, float32 whatever the dtype policy."""
        return keras.KerasTensor((*inputs["targets"].shape, self.target_vocab_size), dtype="float32")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss of `compile` plus the model's costs, averaged over the ids of each feature.

        Raises:
            ValueError: if the model has costs, and `x` is missing.
        """
        costs = y_pred.get(COSTS, {}) if isinstance(y_pred, dict) else {}
        loss = super().compute_loss(x, *self._scored(y, y_pred, sample_weight), training)
        for feature, cost in costs.items():
            if x is None:
                raise ValueError(f"{type(self).__name__}: `compute_loss` needs `x`, the ids to which the costs belong.")
            # as for what layers add, Keras divides by the number of replicas, whose losses are summed
            loss = loss + self._aggregate_additional_loss(mean_cost(cost, ops.not_equal(x[feature], 0)))
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Updates the metrics of `compile` and returns their results; costs are not passed to these metrics."""
        return super().compute_metrics(x, *self._scored(y, y_pred, sample_weight))

    def _scored(self, y, y_pred, sample_weight):
        """Returns (labels, logits, weights), as dicts by feature if there are several features or losses."""
        if not isinstance(y_pred, dict) or y_pred.keys().isdisjoint(RESERVED):
            return y, y_pred, sample_weight
        features = [feature for feature in y_pred if feature not in RESERVED]

        def chosen(values):
            if isinstance(values, dict):
                values = {feature: values[feature] for feature in features if feature in values}
            if len(features) > 1 or values is None or isinstance(values, dict) == isinstance(self.loss, dict):
                return values
            return values.get(features[0]) if isinstance(values, dict) else {features[0]: values}

        return chosen(y), chosen(y_pred), chosen(sample_weight)

    def quantize(self, mode: str | None = None, config=None, filters=None, **kwargs) -> None:
        """Quantizes the matrices of dense layers and embeddings for inference: see `keras.Model.quantize`.

        Afterwards, `fit` only trains weights that are still floats, such as biases and normalizations. ("float8" is for
        training on hardware that supports it, and does not change token embeddings.)

        Args:
            mode: "int8", "int4" or "float8".
            config: `keras.quantizers.QuantizationConfig`, instead of `mode`. A model with custom quantizers can be
                called, but not saved.
            filters, kwargs: see `keras.Model.quantize`.

        Raises:
            ValueError: if the mode is not supported.
        """
        kind = getattr(config, "mode", None) or mode
        if kind not in (None, "int8", "int4", "float8"):
            raise ValueError(f"{type(self).__name__} cannot be quantized to {kind}. Expected int8, int4 or float8.")
        keras.Model.quantize(self, mode, config=config, filters=filters, **kwargs)

    def enable_lora(self, rank: int, lora_alpha: float | None = None, targets: str = "") -> None:
        """Adds LoRA to a built model and freezes all weights except heads: see `fine_tuning.enable_lora`."""
        enable_lora(self, rank, lora_alpha, targets)

    def merge_lora(self) -> None:
        """Merges LoRA into the kernels: see `t2t_lite.models.fine_tuning.merge_lora`."""
        merge_lora(self)

    @classmethod
    def from_hparams(
        cls, hparams: HParams | str, vocab_size: int, target_vocab_size: int | None = None, **kwargs
    ) -> Self:
        """Creates and builds a model from hyperparameters: see `t2t_lite.models.arguments.constructor_arguments`.

        Args:
            hparams: HParams, or the name of an hparams set.
            vocab_size: int, the vocabulary size of the inputs.
            target_vocab_size: int, the vocabulary size of the targets. Defaults to one vocabulary for both.
            **kwargs: further arguments of the constructor.

        Raises:
            UserError: if a value is not supported. The message names the hyperparameter.
        """
        hparams = t2t_lite.registry.hparams(hparams)
        try:
            sizes = {"target_vocab_size": target_vocab_size}  # by name, because the order may differ in subclasses
            if target_vocab_size is None and "target_vocab_size" not in constructor_parameters(cls):
                sizes = {}
            model = cls(vocab_size, **sizes, **{**constructor_arguments(hparams, cls), **kwargs})
            model.build()
            fine_tune(model, hparams)
        except ValueError as error:
            raise UserError(f"hparams: {in_hparams_words(error, cls, **hparams.kinds())}") from error
        return model

    @classmethod
    def reads_any(cls) -> bool:
        """Returns whether this class overrides `from_hparams`, and so may use any hyperparameter."""
        return getattr(cls.from_hparams, "__func__", None) is not SequenceModel.from_hparams.__func__

    @classmethod
    def check_has(cls, names, hparams: HParams | None = None) -> None:
        """Checks that the given hyperparameters have an effect on this model.

        (A model that overrides `from_hparams` may use any hyperparameter.)

        Args:
            names: iterable of str.
            hparams: HParams with all values, for models whose settings depend on one another, or None if unknown.

        Raises:
            UserError: if a hyperparameter has no effect on this model.
        """
        unused = set() if cls.reads_any() else settings_without_effect(cls)
        if without_effect := [name for name in names if name in unused]:
            raise UserError(f"{without_effect[0]} has no effect on the model {cls.__name__}. Remove it.")

    @classmethod
    def from_run(cls, path: str | os.PathLike, data_dir: str | None = None) -> Self:
        """Loads the model of a run with its weights; TensorFlow only.

        Args:
            path: an output_dir (for its newest checkpoint), a checkpoint or an export: see
                `t2t_lite.runs.opening.open_run`.
            data_dir: the folder of the vocabulary, if the vocabulary is not in the checkpoint's folder.

        Raises:
            UserError: if there is no run at the path, or the run's model is of a different class.
        """
        check_tensorflow("from_run")
        model = t2t_lite.runs.open_run(path, data_dir).model
        if not isinstance(model, cls):
            raise UserError(f"{path} is the run of a {type(model).__name__}. Expected a {cls.__name__}.")
        return model

    def save_run(self, output_dir: str, **settings) -> str:
        """Saves this model as a run, for the commands and `Translator.load`; TensorFlow only.

        Args:
            output_dir: str, a new folder.
            **settings: problem, data_dir and other settings: see `t2t_lite.runs.saving.save_run`.

        Returns:
            The path of the checkpoint, without a suffix.
        """
        check_tensorflow("save_run")
        check_plain_weights([self], "save_run")
        return t2t_lite.runs.save_run(self, output_dir, **settings)

    def check_inputs(self, inputs):
        """Raises `ValueError` unless `inputs` is a dict of ids whose ranks, if known, are those in `features`."""
        name = type(self).__name__
        shapes = (f'"{feature}": [batch{", length" * (rank - 1)}]' for feature, rank in self.features.items())
        expected = f"expected a dict of integer ids, {{{', '.join(shapes)}}}"
        if not isinstance(inputs, dict):
            raise ValueError(f"{name}: {expected}; received {type(inputs).__name__}.")
        rows = {}
        possible, needed = {"inputs": 2} | self.features, self.needed_features  # "inputs" may be prompts
        ranks = {f: rank for f, rank in possible.items() if f in needed or inputs.get(f) is not None}
        for feature, rank in ranks.items():
            if feature not in inputs:
                raise ValueError(f"{name}: {feature!r} is missing: {expected}; received the keys {[*inputs]}.")
            ids = inputs[feature]
            if not hasattr(ids, "dtype"):
                raise ValueError(f"{name}: {feature!r} is a {type(ids).__name__}, not an array: {expected}.")
            for kind, call in {"Ragged": "ids.to_tensor()", "Sparse": "tf.sparse.to_dense(ids)"}.items():
                if type(ids).__name__ == f"{kind}Tensor" or getattr(ids, kind.lower(), None) is True:
                    raise ValueError(f"{name}: {feature!r} is a {kind}Tensor: {expected}. Pad it with 0: {call}.")
            if "int" not in str(ids.dtype):  # Keras has no dtype for strings
                raise ValueError(f"{name}: {feature!r} has dtype {ids.dtype}: {expected}.")
            if len(ids.shape) != rank:
                raise ValueError(f"{name}: {feature!r} has shape {tuple(ids.shape)}: {expected}.")
            rows[feature] = ids.shape[0]
        if len({size for size in rows.values() if isinstance(size, int)}) > 1:  # unknown sizes are not compared
            raise ValueError(f"{name}: the features have different numbers of rows, {rows}. Expected the same number.")


def call_on_ones(model, features):
    """Calls a model on ids of 1, to create its weights if the model has none before its first call.

    Args:
        model: keras.Model.
        features: {feature: rank}, used if the model has no attribute `features`.
    """
    features = getattr(model, "features", None) or features
    model({name: ops.ones((1, 2)[:rank], "int32") for name, rank in features.items()}, training=False)
