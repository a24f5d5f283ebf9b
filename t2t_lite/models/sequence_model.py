"""What Keras asks of a model from a dict of ids to logits: its masks, shapes and checks."""

import inspect
import os
import types
from typing import Self

import keras
from keras import ops

import t2t_lite
from t2t_lite.errors import UserError
from t2t_lite.layers.quantization import check_plain_weights
from t2t_lite.models.arguments import (
    constructor_arguments,
    constructor_parameters,
    in_hparams_words,
    settings_without_effect,
)
from t2t_lite.models.exported_model import ExportedModel, SettingsInFiles
from t2t_lite.models.fine_tuning import enable_lora, fine_tune, merge_lora
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.settings.config import HParams
from t2t_lite.settings.reserved_names import COSTS, RESERVED


class SequenceModel(SettingsInFiles, ExportedModel):
    """Base of models that map a dict of int ids, "inputs" [B, S] and "targets" [B, T], to logits of the targets.

    The logits [B, T, target_vocab_size], float32, carry the mask of the targets: losses and metrics of Keras leave
    padding (id 0) out. For training a model may return more: see `t2t_lite.training.objectives.named_outputs`; then
    it overrides `compute_mask` and `compute_output_spec`.

    What the commands say about a model, and do with its weights, follows from `stacks`, `token_embeddings`, `softmax`
    and `config`. All four may be left out: then `--describe` estimates no memory, `save_run` needs the hyperparameters,
    and `--warm_start_from` the same vocabulary.

    Two further methods are optional, and no model of the package has them: `extras/baselines/kermit.py` shows both.

        corrupt(batch, seeds, hparams)            a class method: draws from a batch of {"inputs", "targets"}, int32
                                                  [B, length], what the model reads and predicts, all of `features`;
                                                  TensorFlow code without state: see `Problem.corrupt`
        search(inputs, limit, max_length=None)    decodes by itself, instead of one id after the other: returns (ids
                                                  [B, 1, T], scores [B, 1], ended [B, 1]) and more: see `beam_search`

    Attributes:
        HPARAMS: dict of the settings that only this model has, {name: `ranges.setting(…)`}; its sets add them
            by `HParams.of_model`.
        IDLE: names of hyperparameters that mean something to a base and nothing to this model: refused where a user
            sets them.
        features: {feature: rank} of the dict: 2 for [B, length], 1 for [B]. A subclass may have others.
        vocab_size, target_vocab_size: int, ids of the inputs and of the targets, which a subclass sets.
        config: dict of the constructor's arguments, of which hyperparameters can be made; None: they can't.
        softmax: `TokenEmbedding` that makes the logits of "targets"; None: something else makes them.
        predicted_share: float, the share of positions that it makes logits of, for estimates of cost.
        context_length: int, positions before a row's own that each layer sees in training, by a state.
    """

    IDLE = ()
    features = types.MappingProxyType({"inputs": 2, "targets": 2})
    config = None
    predicted_share = 1.0
    context_length = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.softmax = None  # not of the class: with PyTorch that would hide a layer of the instance

    @property
    def needed_features(self):
        """{feature: rank} of what a call reads; what else is in `features`, labels alone, may be left out of it."""
        return self.features

    def initial_state(self, rows, training=False):
        """Returns what the model remembers before it reads a text; None: it carries no state from batch to batch.

        A model that overrides this has a hyperparameter `segment_length` in its `HPARAMS`, and is trained and evaluated
        on segments of that many ids, in the order of the text. `call` reads {"targets" [rows, segment_length], "before"
        [rows], the id before each segment or 0 where a text begins, "state"}, and returns {"targets": logits, "state":
        the new one}, of the same structure and shapes. Where there is no "state" it begins with none, and need not
        return one.

        Args:
            rows: int, of a batch.
            training: bool. In evaluation the state may be larger, as a setting of the model says whose name begins
                with `eval_`: t2t-eval may change it.

        Returns:
            A structure of tensors whose first axis is the rows.
        """
        return None

    def stacks(self):
        """Returns {feature: `TransformerStack`}, of the features over whose positions a stack runs.

        Where its layers have a `cross_attention`, that attends to the positions of "inputs".
        """
        return {}

    def token_embeddings(self):
        """Returns {feature: `TokenEmbedding`}, which looks the ids of a feature up; two features may share one."""
        return {}

    def head_weights(self):
        """Returns the weights that only a prediction needs, which a model that goes on from this one may lack."""
        return []

    def build_if_needed(self):
        """Creates all weights, unless they are there: for methods that are called without the model.

        Inside of a call of the model `build` must not come again. In it weights are seen in the compute dtype, and with
        PyTorch, Keras would take these copies for the model's parameters, whose gradients it clears before a step.
        """
        if not self.built:
            self.build()

    def __call__(self, inputs, **kwargs):
        """Calls the model. Raises `ValueError` unless `inputs` is such a dict."""
        inputs = self.whole_ids(inputs)
        self.check_inputs(inputs)
        return super().__call__(inputs, **kwargs)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Has Keras' `fit` in a strategy's scope build the model on one replica's batch.

        Keras takes the mean of all: ids of float64, and an error if one has a row more than another.
        """
        strategy = self._distribute_strategy
        if iterator is not None and strategy is not None:
            *_, batches = next(iter(iterator))
            data_batch = keras.tree.map_structure(lambda x: strategy.experimental_local_results(x)[0], next(batches))
        super()._maybe_symbolic_build(data_batch=data_batch)

    def _make_function(self, step_function, *args, **kwargs):
        """Makes what Keras runs a step with: in TensorFlow another function for each set of ranks in a batch.

        The same one would forget ranks that change, as those of `sample_weight` do from one `fit` to the next, and
        losses and metrics ask for them.
        """
        if keras.backend.backend() != "tensorflow":
            return super()._make_function(step_function, *args, **kwargs)
        import tensorflow as tf

        functions = {}

        def function(iterator):
            if not hasattr(iterator, "element_spec"):  # of a method `…_on_batch`: it holds one batch
                iterator = list(iterator)
            leaves = tf.nest.flatten(getattr(iterator, "element_spec", iterator), expand_composites=True)
            ranks = tuple(tf.TensorShape(getattr(leaf, "shape", None)).rank for leaf in leaves)
            if ranks not in functions:
                functions[ranks] = super(SequenceModel, self)._make_function(step_function, *args, **kwargs)
            return functions[ranks](iterator)

        return function

    def fit(self, *args, **kwargs):
        """Trains: see `keras.Model.fit`. Raises `ValueError` for `class_weight` of labels that are not [batch]."""
        self._check_class_weight(super().fit, args, kwargs)
        return super().fit(*args, **kwargs)

    def train_on_batch(self, *args, **kwargs):
        """Trains: see `keras.Model.train_on_batch`. Raises `ValueError` as `fit`."""
        self._check_class_weight(super().train_on_batch, args, kwargs)
        return super().train_on_batch(*args, **kwargs)

    fit.__wrapped__, train_on_batch.__wrapped__ = keras.Model.fit, keras.Model.train_on_batch  # their arguments

    def _check_class_weight(self, method, args, kwargs):
        """Raises `ValueError` for `class_weight` where labels have two axes: Keras takes them for one-hot classes."""
        if inspect.signature(method).bind(*args, **kwargs).arguments.get("class_weight") is None:
            return
        features = {f: keras.Input((None,) * (rank - 1), dtype="int32") for f, rank in self.features.items()}
        if any(len(logits.shape) > 2 for logits in keras.tree.flatten(self.compute_output_spec(features))):
            raise ValueError(
                f"{type(self).__name__}: `class_weight` is of labels [batch], a class of each row; these are ids "
                "[batch, length]. Expected `sample_weight` [batch, length], such as weights[labels] of an array."
            )

    def compute_mask(self, inputs, mask=None):
        """Returns bool [B, T]: True where the target is not padding."""
        return ops.not_equal(inputs["targets"], 0)

    def compute_output_shape(self, input_shape):
        """Returns the shapes of what `call` returns, of a dict of shapes."""
        inputs = {name: keras.KerasTensor(shape, dtype="int32") for name, shape in input_shape.items()}
        return keras.tree.map_structure(lambda output: output.shape, self.compute_output_spec(inputs))

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic logits, float32 whatever the dtype policy."""
        return keras.KerasTensor((*inputs["targets"].shape, self.target_vocab_size), dtype="float32")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss of `compile`, and the model's own costs, each a mean over the ids of its feature."""
        costs = y_pred.get(COSTS, {}) if isinstance(y_pred, dict) else {}
        loss = super().compute_loss(x, *self._scored(y, y_pred, sample_weight), training)
        for feature, cost in costs.items():
            is_there = ops.cast(ops.not_equal(x[feature], 0), cost.dtype)
            loss = loss + ops.sum(cost * is_there) / ops.maximum(ops.sum(is_there), 1)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Updates the metrics of `compile`, to which the model's own costs say nothing, and returns their results."""
        return super().compute_metrics(x, *self._scored(y, y_pred, sample_weight))

    def _scored(self, y, y_pred, sample_weight):
        """Returns (labels, logits, weights) of features; of one feature alone in a dict if the losses are in one."""
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
        """Quantizes matrices of dense layers and embeddings for inference: see `keras.Model.quantize`.

        `fit` afterwards trains only what is left in floats, such as biases and normalizations. ("float8" is for
        training, on hardware that has it; token embeddings stay as they are.)

        Args:
            mode: "int8", "int4" or "float8".
            config: `keras.quantizers.QuantizationConfig`, instead of `mode`. A model quantized with quantizers of your
                own can be called, but not saved.
            filters, kwargs: see `keras.Model.quantize`.

        Raises:
            ValueError: another mode.
        """
        wanted = getattr(config, "mode", None) or mode
        if wanted not in (None, "int8", "int4", "float8"):
            raise ValueError(f"{type(self).__name__}: can't be quantized to {wanted}. Expected int8, int4 or float8.")
        keras.Model.quantize(self, mode, config=config, filters=filters, **kwargs)

    def enable_lora(self, rank: int, lora_alpha: float | None = None) -> None:
        """Gives a built model LoRA, and freezes all else but heads: see `t2t_lite.models.fine_tuning.enable_lora`."""
        enable_lora(self, rank, lora_alpha)

    def merge_lora(self) -> None:
        """Adds LoRA to the kernels: see `t2t_lite.models.fine_tuning.merge_lora`."""
        merge_lora(self)

    @classmethod
    def from_hparams(
        cls, hparams: HParams | str, vocab_size: int, target_vocab_size: int | None = None, **kwargs
    ) -> Self:
        """Makes a built model of a hyperparameter set: see `t2t_lite.models.arguments.constructor_arguments`.

        Args:
            hparams: HParams, or the name of a set.
            vocab_size: int, ids of the inputs.
            target_vocab_size: int; None: shared with the inputs.
            **kwargs: further arguments of the constructor.

        Raises:
            UserError: a value that has no meaning here; the message names the hyperparameter.
        """
        hparams = t2t_lite.registry.hparams(hparams)
        try:
            sizes = {"target_vocab_size": target_vocab_size}  # by name: a subclass may have another second argument
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
        """Returns whether any hyperparameter may mean something to this model, by a `from_hparams` of its own."""
        return getattr(cls.from_hparams, "__func__", None) is not SequenceModel.from_hparams.__func__

    @classmethod
    def check_has(cls, names, hparams: HParams | None = None) -> None:
        """Checks that hyperparameters mean something to this model; one with a `from_hparams` of its own reads any.

        Args:
            names: iterable of str.
            hparams: HParams with all values, for models whose settings depend on one another; None: not known.

        Raises:
            UserError: one is of another model.
        """
        unused = set() if cls.reads_any() else settings_without_effect(cls)
        if found := [name for name in names if name in unused]:
            raise UserError(f"{found[0]} means nothing to the model {cls.__name__}. Leave it out.")

    @classmethod
    def from_run(cls, path: str | os.PathLike, data_dir: str | None = None) -> Self:
        """Returns the model of a run, with its weights; TensorFlow only.

        Args:
            path: an output_dir (its newest checkpoint), a checkpoint or an export: see
                `t2t_lite.runs.opening.open_run`.
            data_dir: where the vocabulary is, if it is not beside the checkpoint.

        Raises:
            UserError: nothing there, or a model of another class.
        """
        check_tensorflow("from_run")
        model = t2t_lite.runs.open_run(path, data_dir).model
        if not isinstance(model, cls):
            raise UserError(f"{path}: holds a {type(model).__name__}. Expected a {cls.__name__}.")
        return model

    def save_run(self, output_dir: str, **settings) -> str:
        """Makes a run of this model, for the commands and `Translator.load`; TensorFlow only.

        Args:
            output_dir: str, a new folder.
            **settings: problem, data_dir, and others: see `t2t_lite.runs.saving.save_run`.

        Returns:
            The path of the checkpoint, without suffix.
        """
        check_tensorflow("save_run")
        check_plain_weights([self], "save_run")
        return t2t_lite.runs.save_run(self, output_dir, **settings)

    def check_inputs(self, inputs):
        """Raises `ValueError` unless `inputs` is such a dict, as far as shapes are known."""
        name = type(self).__name__
        shapes = (f'"{feature}": [batch{", length" * (rank - 1)}]' for feature, rank in self.features.items())
        expected = f"expected a dict of integer ids, {{{', '.join(shapes)}}}"
        if not isinstance(inputs, dict):
            raise ValueError(f"{name}: {expected}; received {type(inputs).__name__}.")
        rows = {}
        possible, needed = {"inputs": 2} | self.features, self.needed_features  # a language model may get prompts
        ranks = {f: rank for f, rank in possible.items() if f in needed or inputs.get(f) is not None}
        for feature, rank in ranks.items():
            if feature not in inputs:
                raise ValueError(f"{name}: {feature!r} is missing: {expected}; received the keys {[*inputs]}.")
            ids = inputs[feature]
            if not hasattr(ids, "dtype"):
                raise ValueError(f"{name}: {feature!r} is a {type(ids).__name__}, no array: {expected}.")
            if "int" not in str(ids.dtype):  # Keras has no dtype for strings
                raise ValueError(f"{name}: {feature!r} is of dtype {ids.dtype}: {expected}.")
            if len(ids.shape) != rank:
                raise ValueError(f"{name}: {feature!r} is of shape {tuple(ids.shape)}: {expected}.")
            rows[feature] = ids.shape[0]
        if len({size for size in rows.values() if isinstance(size, int)}) > 1:  # None, and tensors, are not known
            raise ValueError(f"{name}: the numbers of rows are {rows}: expected the same for all features.")


def call_on_ones(model, features):
    """Gives a model its weights, where it has them only once it is called.

    Args:
        model: keras.Model.
        features: {feature: rank}, for a model without `features` of its own.
    """
    features = getattr(model, "features", None) or features
    model({name: ops.ones((1, 2)[:rank], "int32") for name, rank in features.items()}, training=False)
