"""A mixture of feed-forward experts, a few of which process each position (Shazeer et al. 2017, arXiv 1701.06538)."""

import numbers
from collections.abc import Callable
from typing import ClassVar

import keras
from keras import ops

from t2t_lite.layers.base import GATED, GLOROT, Initializer, dense_initializers, own_initializer
from t2t_lite.layers.checks import check_required_sizes, shape_of
from t2t_lite.layers.context import Context, mean_cost
from t2t_lite.layers.dropout import Dropout, ScopedSeed, is_compiled, normal
from t2t_lite.layers.feed_forward import FeedForward
from t2t_lite.registry import register_feed_forward
from t2t_lite.settings.ranges import setting

_NOISE = 1e-2  # the minimum standard deviation of the gates' noise


@register_feed_forward("local_moe")
@keras.saving.register_keras_serializable("t2t_lite")
class MixtureOfExperts(FeedForward):
    """Computes Σ g_i E_i(x) over the k experts that the gates choose for a position (tensor2tensor's `local_moe`).

    Each expert is a network like `FeedForward`. The gates are a softmax over the k largest entries of x W_g + ε
    softplus(x W_n), where ε is normal noise in training and 0 otherwise (equations 3 to 5). The capacity of experts is
    not limited, so the result for a position does not depend on other positions. The balancing cost is loss_coef ·
    (CV²(importance) + CV²(load)), computed over the non-padding positions of a batch (equations 7 to 11). Each of these
    positions is assigned the cost of the batch, so that their mean equals that cost.

    Args:
        filter_size: int, d_ff, the size of an expert's inner layer.
        num_experts: int.
        k: int, number of experts per position.
        loss_coef: float, factor of the balancing cost.
        dropout: float in [0, 1), rate for the inner activations; all experts of a position drop the same units.
        activation, kernel_initializer, bias_initializer, output_initializer: see `FeedForward`. The gates are
            initialized with zeros, so that at first only the noise determines which experts are chosen.

    Raises:
        ValueError: a size is not positive, there are fewer experts than `k`, `loss_coef` is negative, or an argument
            is invalid for `FeedForward`.

    Example:
        >>> layer = MixtureOfExperts(filter_size=16, num_experts=4, k=2)
        >>> layer(keras.ops.ones((1, 5, 8))).shape
        (1, 5, 8)
    """

    HPARAMS: ClassVar = {
        "moe_num_experts": setting(
            16, 1, 2**12, argument="feed_forward.num_experts", fixed=True,
            meaning="Number of experts per layer (local_moe).",
        ),
        "moe_k": setting(
            2, 1, 2**12, argument="feed_forward.k", fixed=True, meaning="Number of experts per position (local_moe)."
        ),
        "moe_loss_coef": setting(
            1e-3, 0, 10**3, argument="feed_forward.loss_coef",
            meaning="Factor of the cost that balances the load of experts (local_moe).",
        ),
    }  # fmt: skip

    has_costs = True
    without_lora = "experts (ffn_layer=local_moe)"

    def __init__(
        self,
        filter_size: int,
        num_experts: int = 16,
        k: int = 2,
        loss_coef: float = 1e-3,
        dropout: float = 0.0,
        activation: str | Callable = "relu",
        kernel_initializer: Initializer = GLOROT,
        bias_initializer: Initializer = "zeros",
        output_initializer: Initializer = None,
        **kwargs,
    ):
        super().__init__(
            filter_size, dropout, activation, kernel_initializer, bias_initializer, output_initializer, **kwargs
        )
        check_required_sizes(num_experts=num_experts, k=k)
        if num_experts < k:
            raise ValueError(
                f"`num_experts` must be at least `k`, the number of experts per position: received "
                f"num_experts={num_experts}, k={k}."
            )
        if not isinstance(loss_coef, numbers.Real) or not loss_coef >= 0:
            raise ValueError(f"`loss_coef` must be at least 0: received loss_coef={loss_coef!r}.")
        self.num_experts, self.k, self.loss_coef = num_experts, k, loss_coef
        self.noise = ScopedSeed()
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, input_shape):
        """Creates the two matrices of the gates, and the weights of `FeedForward` for each expert.

        The experts' weights are concatenated, because optimizers recognize a bias by its number of axes.
        """
        hidden_size = input_shape[-1]
        self.require_size(input_shape)
        for name in ("gate", "noise"):
            shape = (hidden_size, self.num_experts)
            weight = self.add_weight(name=f"{name}_kernel", shape=shape, initializer="zeros", autocast=False)
            setattr(self, f"{name}_kernel", weight)
        sizes = {"inner": (hidden_size, self.filter_size), "outer": (self.filter_size, hidden_size)}
        if self.activation == GATED:
            sizes["linear"] = (hidden_size, self.filter_size)
        self.parts = tuple(sizes)
        for name, shape in sizes.items():
            kernel, bias = dense_initializers(self.initializers, name == "outer").values()
            self._add_of_all(f"{name}_kernel", shape, kernel)
            self._add_of_all(f"{name}_bias", shape[1:], bias)

    def _add_of_all(self, name, shape, initializer):
        """Adds a weight that concatenates the separately initialized values of all experts."""

        def values(_, dtype=None):
            makers = (keras.initializers.get(own_initializer(initializer) or GLOROT) for _ in range(self.num_experts))
            return ops.concatenate([initial(shape, dtype=dtype) for initial in makers], axis=0)

        weight = self.add_weight(name=name, shape=(self.num_experts * shape[0], *shape[1:]), initializer=values)
        setattr(self, name, weight)

    def weights_of_all(self):
        """Returns the experts' weights, {name: tensor [num_experts, …]}."""
        names = (f"{part}_{kind}" for part in self.parts for kind in ("kernel", "bias"))
        tensors = {name: ops.convert_to_tensor(getattr(self, name)) for name in names}
        return {name: ops.reshape(x, (self.num_experts, -1, *x.shape[1:])) for name, x in tensors.items()}

    def flops(self, length):
        """Returns the number of operations of the gates and of `k` experts for one position."""
        hidden_size = self.gate_kernel.shape[0]
        return 2 * hidden_size * (self.num_experts + self.k * len(self.parts) * self.filter_size)

    def activations(self, length, compute):
        """Returns the bytes per position that the backward pass needs; `compute` is the number of bytes per value."""
        hidden_size, inner = self.gate_kernel.shape[0], 1 if self.activation == "relu" else 4
        inner, dropped = inner + (self.dropout_rate > 0), self.dropout_rate > 0
        stored = self.k * compute * (self.filter_size * inner + 2 * hidden_size)  # includes inputs and outputs
        return stored + self.filter_size * dropped * compute + 8 * 4 * self.num_experts

    def gates(self, inputs, training=False):
        """Chooses the experts of each position.

        Args:
            inputs: [N, hidden].
            training: bool.

        Returns:
            (gates float32 [N, k], experts int32 [N, k], load float32 [N, num_experts]). The load is 1 for the k chosen
            experts; in training, it is the probability that an expert is chosen if its noise is sampled again.
        """
        x = ops.cast(inputs, "float32")
        clean = logits = ops.matmul(x, ops.cast(self.gate_kernel, "float32"))
        if training:
            deviation = ops.softplus(ops.matmul(x, ops.cast(self.noise_kernel, "float32"))) + _NOISE
            logits = clean + normal(shape_of(clean), self.noise) * deviation
        best, experts = ops.top_k(logits, min(self.k + 1, self.num_experts))
        experts = ops.cast(experts[:, : self.k], "int32")
        gates = ops.softmax(best[:, : self.k], axis=-1) if self.k > 1 else ops.ones_like(best[:, :1])
        if training and self.k < self.num_experts:
            next_best, last = best[:, self.k :], best[:, self.k - 1 : self.k]
            threshold = ops.where(logits > next_best, next_best, last)
            load = 0.5 * (1 + ops.erf((clean - threshold) / deviation * 0.5**0.5))
        else:
            load = ops.sum(ops.one_hot(experts, self.num_experts, dtype="float32"), axis=1)
        return gates, experts, load

    def call(self, inputs, context=None, training=None, mask=None):
        """Applies the chosen experts to each position: [..., hidden] -> [..., hidden].

        Adds "cost", float32 [...], to the results of a `context`. In training, also adds "shares/expert_use", float32
        [num_experts], the number of non-padding positions that chose each expert. Without a context, the cost of the
        positions in `mask`, bool [...], is a loss in training (`add_loss`).
        """
        shape = shape_of(inputs)
        x = ops.reshape(ops.cast(inputs, self.compute_dtype), (-1, shape[-1]))
        gates, experts, load = self.gates(x, training)
        factors = None  # dropout's factors for the inner activations
        if training and self.dropout_rate:
            factors = self.dropout(ops.ones((shape_of(x)[0], self.filter_size), x.dtype), training=True)
        compute = _chosen if _selects(x) else _all
        output = compute(self, x, ops.cast(gates, x.dtype), experts, factors)
        adds_cost = context is None and training
        if adds_cost:
            context = Context(nonpadding=() if mask is None else mask)
        if context is not None:
            self._add_results(context, shape[:-1], gates, experts, load, training)
        if adds_cost:
            self.add_loss(mean_cost(context.results.total("cost"), context.nonpadding))
        return ops.reshape(output, shape)

    def expert(self, x, factors, weights):
        """Applies one expert, [n, hidden] -> [n, hidden], or all experts, [1, n, hidden] -> [num_experts, n, hidden].

        Args:
            x: the inputs.
            factors: [n, filter_size], dropout's factors for the inner activations, or None.
            weights: the result of `weights_of_all`, or the part for one expert.
        """

        def dense(x, name):
            return ops.matmul(x, weights[f"{name}_kernel"]) + weights[f"{name}_bias"][..., None, :]

        inner = self.activate(dense(x, "inner"))
        if self.activation == GATED:
            inner = inner * dense(x, "linear")
        return dense(inner if factors is None else inner * factors, "outer")

    def _add_results(self, context, shape, gates, experts, load, training):
        counts = context.nonpadding
        counts = ops.ones(shape, "bool") if isinstance(counts, tuple) else counts
        is_there = ops.cast(ops.reshape(counts, (-1, 1)), "float32")
        chosen = ops.one_hot(experts, self.num_experts, dtype="float32")
        importance = ops.sum(ops.sum(chosen * gates[..., None], axis=1) * is_there, axis=0)
        load = ops.sum(load * is_there, axis=0)
        cost = self.loss_coef * (_squared_variation(importance) + _squared_variation(load))
        context.results.add("cost", ops.where(counts, cost, 0.0))
        if training:
            use = ops.sum(ops.sum(chosen, axis=1) * is_there, axis=0)
            context.results.add("shares/expert_use", ops.stop_gradient(use))


def _squared_variation(x):
    """Returns CV²(x), the variance divided by the squared mean. As in tensor2tensor, 1e-10 avoids a division by 0."""
    return ops.var(x) / (ops.square(ops.mean(x)) + 1e-10)


def _selects(x):
    """Returns whether rows can be selected per expert. This needs TensorFlow with dynamic shapes and without XLA."""
    if keras.backend.backend() != "tensorflow" or is_compiled():
        return False
    import tensorflow as tf
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext  # not public

    if tf.executing_eagerly():
        return True
    return x.shape[0] is None and not GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def _all(layer, x, gates, experts, factors):
    """Applies all experts to all rows [N, hidden], and sums k results per row, weighted by the gates."""
    outputs = layer.expert(x[None], factors, layer.weights_of_all())
    weights = ops.sum(ops.one_hot(experts, layer.num_experts, dtype=x.dtype) * gates[..., None], axis=1)
    return ops.einsum("end,ne->nd", outputs, weights)


def _chosen(layer, x, gates, experts, factors):
    """Applies each expert only to the rows that chose it; needs TensorFlow, because shapes depend on the gates.

    A single row is padded with a row of zeros, because the product of a matrix with a vector rounds differently.
    Otherwise the expert that a later position chooses would change the result of an earlier position.
    """
    import tensorflow as tf

    order = tf.argsort(tf.reshape(experts, [-1]), stable=True)  # sorts the choices [N * k] by expert
    sizes = tf.reduce_sum(tf.cast(experts[..., None] == tf.range(layer.num_experts), tf.int32), [0, 1])
    rows, missing = order // layer.k, tf.unstack(tf.cast(sizes == 1, tf.int32))

    def of_each(values):
        parts = tf.split(tf.gather(values, rows), sizes, num=layer.num_experts)
        return [tf.pad(part, [(0, more), (0, 0)]) for part, more in zip(parts, missing, strict=True)]

    inputs, factors = of_each(x), [None] * layer.num_experts if factors is None else of_each(factors)
    weights = {name: tf.unstack(weight) for name, weight in layer.weights_of_all().items()}
    outputs = [
        layer.expert(inputs[i], factors[i], {name: values[i] for name, values in weights.items()})
        for i in range(layer.num_experts)
    ]
    # Unlike indexing, a slice of the whole tensor costs nothing, neither in the forward pass nor in the backward pass.
    outputs = [tf.slice(each, [0, 0], [size, -1]) for each, size in zip(outputs, tf.unstack(sizes), strict=True)]
    outputs = tf.gather(tf.concat(outputs, 0), tf.math.invert_permutation(order))
    return tf.reduce_sum(tf.reshape(outputs, (-1, layer.k, x.shape[1])) * gates[..., None], axis=1)
