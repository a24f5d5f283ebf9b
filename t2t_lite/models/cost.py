"""What a Transformer costs: operations and memory of training, counted from its layers."""

import dataclasses
import math

import keras

from t2t_lite.layers import FeedForward, MultiHeadAttention, RelativeAttention, Residual, RestrictedAttention

SENTENCE = 25  # tokens per side, where a length has to be assumed; attention is then a hundredth of the operations


@dataclasses.dataclass(frozen=True)
class Flops:
    """Floating-point operations of one forward pass in matrix products; a multiply-add is two.

    Attributes:
        source: float, per source token: the encoder, and the decoder's keys and values of the memory.
        target: float, per target token: the decoder and the softmax.
    """

    source: float
    target: float

    def training(self, source_tokens, target_tokens):
        """Returns the operations of training on so many tokens: three forward passes (the backward pass is two)."""
        return 3 * (self.source * source_tokens + self.target * target_tokens)


def forward_flops(model, source_length=SENTENCE, target_length=SENTENCE):
    """Counts the matrix products of a forward pass.

    Every matrix weight costs 2 operations for each element and position of its own side, attention 2 · h · d_k · n for
    a position's scores and 2 · h · d_v · n for its weighted sums over n positions. Masked positions count, as they are
    computed. Restricted attention counts the min(r, n) positions that are seen (paper, table 1); its blocks compute up
    to three times as many. Relative attention counts its products with the 2k + 1 vectors, not their spreading over
    positions. Not counted: look-ups (0), additions, softmax, normalisation, dropout (a few per cent), and weights of a
    user's own layers that are not in a `Dense`.

    Args:
        model: Transformer, with or without values.
        source_length, target_length: int, tokens of a sentence.

    Returns:
        Flops.
    """
    source = target = 0
    for layer in model.encoder.layers:
        source += _block_flops(layer, source_length)[0]
    for layer in model.decoder.layers:
        own, memory = _block_flops(layer, target_length, source_length)
        source, target = source + memory, target + own
    return Flops(source, target + 2 * sum(math.prod(w.shape) for w in model.softmax.weights if len(w.shape) > 1))


def _block_flops(layer, length, memory_length=0):
    """Returns the operations (a position of its own side, a position of the memory)."""
    cross, own, memory = _cross_attention(layer), 0, 0
    for part in layer._flatten_layers():
        if isinstance(part, keras.layers.Dense):
            flops = 2 * math.prod(part.kernel.shape)
            if cross is not None and part in (cross.key_projection, cross.value_projection):
                memory += flops
            else:
                own += flops
        elif isinstance(part, MultiHeadAttention):
            own += _attention_flops(part, memory_length if part is cross else length)
    return own, memory


def _attention_flops(attention, keys):
    """Returns the operations of one query's scores and weighted sums."""
    key_channels, value_channels = _channels(attention)
    flops = 2 * (key_channels + value_channels) * _seen(attention, keys)
    if isinstance(attention, RelativeAttention):
        distances = 2 * attention.max_relative_position + 1
        flops += 2 * distances * (key_channels + value_channels * attention.add_relative_to_values)
    return flops


def training_memory(model, hparams, source_length=SENTENCE, target_length=SENTENCE):
    """Estimates the memory of one training step on one replica: `batch_size` tokens per side.

    The sum of what is alive at different moments, without the allocator's waste and the program's own memory (some
    hundreds of MB). Peaks of a real step on a CPU, less that of the program before it had a model: base_v1, 4,000
    tokens, vocabulary 37,000: 4.60 GB, estimate 4.72; base, sentences of 50, 8,000 ids: 4.06 GB, estimate 3.77.
    Accumulated batches are reckoned one after the other; where TensorFlow computes several at once it takes more.

    weights     4 bytes per parameter; in mixed precision 2 more, for the copies in half precision
    gradients   4 bytes per parameter, 8 with accumulation; a tied embedding's twice, for look-up and softmax
    optimizer   8 bytes per parameter with Adam, 0 with SGD, rows and columns with Adafactor; 4 more with ema_decay
    activations what the backward pass needs (a: 4 bytes in float32, 2 in half precision; a mask of dropout: 1 byte):
                  attention, per query: a · 2 h (d_k + d_v) with the keys' and values' own positions, and for each head
                    and visible position 4 for the softmax, a for the weights after dropout or in half precision, the
                    mask
                  feed-forward, per position: a · d_ff; 4 of them for gelu, swish and swiglu; one more with dropout, and
                    the mask
                  residual connection, per position: (8 + a) d for its normalisation, and the mask
                  a final normalisation: (8 + a) d; a sum of embedding and position: a · d, and the mask
                with recompute_grad: a · d per layer, for what goes into it, and one whole layer
    logits      12 bytes for each target token and id: the logits, their softmax, their gradient

    Args:
        model: Transformer, with or without values.
        hparams: HParams: batch_size, optimizer, ema_decay, gradient_accumulation_steps, dtype_policy, recompute_grad.
        source_length, target_length: int, tokens of a sentence; attention's weights grow with it.

    Returns:
        dict of "weights", "gradients", "optimizer", "activations" and "logits": int, bytes.
    """
    weights = sum(math.prod(w.shape) for w in model.trainable_weights)
    tied = model.softmax is model.target_embedding
    embedding = math.prod(model.softmax.embeddings.shape) if tied else 0
    compute = 4 if model.compute_dtype == "float32" else 2
    hidden_size = model.softmax.hidden_size
    layers = [_layer_memory(layer, hidden_size, source_length, 0, compute) for layer in model.encoder.layers]
    layers += [
        _layer_memory(layer, hidden_size, target_length, source_length, compute) for layer in model.decoder.layers
    ]
    kept = max(layers) + len(layers) * compute * hidden_size if hparams.recompute_grad else sum(layers)
    for dropout, norm in (
        (model.encoder_dropout, model.encoder_norm),
        (model.decoder_dropout, model.decoder_norm),
    ):
        kept += hidden_size * (compute + (dropout.rate > 0))
        kept += (8 + compute) * hidden_size if norm is not None else 0
    return {
        "weights": weights * (4 if compute == 4 else 6),
        "gradients": 4 * (weights * (2 if hparams.gradient_accumulation_steps > 1 else 1) + embedding),
        "optimizer": _optimizer_memory(model, hparams),
        "activations": hparams.batch_size * kept,
        "logits": hparams.batch_size * 12 * model.softmax.vocab_size,
    }


def _optimizer_memory(model, hparams):
    shapes = [tuple(w.shape) for w in model.trainable_weights]
    weights = sum(map(math.prod, shapes))
    if hparams.optimizer == "adafactor":
        factored = [s for s in shapes if hparams.optimizer_adafactor_factored and len(s) > 1]
        kept = sum(math.prod(s) // s[-1] + math.prod(s) // s[-2] for s in factored)  # rows, columns
        kept += weights - sum(map(math.prod, factored))
        kept += weights * (hparams.optimizer_adafactor_beta1 > 0)
    else:
        kept = 0 if hparams.optimizer == "sgd" else 2 * weights
    return 4 * (kept + weights * (hparams.ema_decay > 0))


def _layer_memory(layer, hidden_size, length, memory_length, compute):
    """Returns the bytes that a token leaves in an encoder or decoder layer, in sentences of `length`."""
    kept = _scores_memory(layer, length, memory_length, compute)
    for part in layer._flatten_layers():
        if isinstance(part, Residual):
            kept += (8 + compute + (part.dropout_rate > 0)) * hidden_size
        elif isinstance(part, FeedForward):
            inner = 1 if part.activation == "relu" else 4
            dropped = part.dropout_rate > 0
            kept += part.filter_size * ((inner + dropped) * compute + dropped)
        elif isinstance(part, MultiHeadAttention):
            kept += 2 * sum(_channels(part)) * compute
    return kept


def _scores_memory(layer, length, memory_length, compute):
    """Returns the bytes of one query's attention weights in one encoder or decoder layer."""
    kept, cross = 0, _cross_attention(layer)
    for part in layer._flatten_layers():
        if isinstance(part, MultiHeadAttention):
            keys = _seen(part, memory_length if part is cross else length)
            dropped = part.dropout_rate > 0
            kept += part.num_heads * keys * (4 + compute * (dropped or compute < 4) + dropped)
            if isinstance(part, RelativeAttention) and part.add_relative_to_values:
                kept += part.num_heads * 2 * length * compute  # the weights, ordered by distance
    return kept


def _cross_attention(layer):
    residual = getattr(layer, "cross_attention", None)
    return None if residual is None else residual.layer


def _channels(attention):
    """Returns h · d_k and h · d_v."""
    return attention.num_heads * attention.query_size, attention.num_heads * attention.value_size


def _seen(attention, keys):
    return min(attention.neighborhood, keys) if isinstance(attention, RestrictedAttention) else keys


@dataclasses.dataclass(frozen=True)
class PaperCost:
    """The paper's estimate of what a training costs (section 6.1, table 2), and the schedule it is of (5.1, 5.2).

    Attributes:
        hours: float, on `gpus` P100.
        steps: int.
        tokens: int, source tokens per step, and as many target tokens.
        gpus: int.
        sustained: float, single-precision operations per second that the paper reckons with.
    """

    hours: float
    steps: int
    tokens: int = 25_000
    gpus: int = 8
    sustained: float = 9.5e12

    @property
    def flops(self):
        """Training time x GPUs x sustained capacity."""
        return self.hours * 3600 * self.gpus * self.sustained


PAPER = {
    "transformer_base_v1": PaperCost(12, 100_000),
    "transformer_big_v1": PaperCost(84, 300_000),
    "transformer_big_enfr_v1": PaperCost(84, 300_000),
}
