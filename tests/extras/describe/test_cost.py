"""What several replicas need: formulas against numbers computed by hand, and bytes against a real step's graph."""

import math

import keras
import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.extras.describe.cost import (
    all_reduced_bytes,
    forward_flops,
    largest_batch_size,
    sent_bytes,
    training_memory,
)
from t2t_lite.extras.describe.describe import Description, shapes_only
from t2t_lite.layers import TokenEmbedding
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.settings.config import HParams
from tests.layers.kinds import registered
from tests.training.steps import VOCAB, make_step, settings

SENTENCES = {"inputs": 25, "targets": 25}
TINY = registry.hparams("transformer_tiny").parse("batch_size=100")


def described(hparams=TINY, **arguments):
    return Description(shapes_only(registry.model("transformer"), hparams, VOCAB), hparams, **arguments)


def value(text, name):
    """Returns what stands behind a name in a description."""
    (line,) = [line for line in text.splitlines() if line.strip().startswith(name)]
    return line.strip().removeprefix(name).strip()


@pytest.mark.long
def test_the_bytes_are_those_of_the_collective_in_the_graph_of_a_step():
    step = make_step(settings("adam", accumulation=2, more=",dtype_policy=mixed_bfloat16"), replicas=2)
    operations = step.graph().get_operations()
    packed = [op.inputs[0].op for op in operations if op.type == "CollectiveReduceV2"]
    assert len(packed) == 2
    for buffer in packed:
        assert (buffer.type, buffer.outputs[0].dtype.size) == ("ConcatV2", 4)
        shapes = [piece.op.inputs[0].shape for piece in buffer.inputs[:-1]]  # the last one is the axis
        gradients = [shape for shape in shapes if shape.rank]
        variables = [variable.shape for variable in reversed(step.model.trainable_variables)]
        assert len(gradients) == len(variables)
        # An embedding's gradient has a number of rows that the graph does not know.
        assert all(shape.is_compatible_with(own) for shape, own in zip(gradients, variables, strict=True))
        numbers = sum(map(math.prod, variables)) + len(shapes) - len(gradients)
        assert 4 * numbers == all_reduced_bytes(sum(map(math.prod, variables)))


def test_a_description_of_eight_replicas_by_hand():
    found = described(TINY.parse("gradient_accumulation_steps=3"), replicas=8)
    # The sums of the objective, the loss and who stops as well. Of eight pieces, seven are sent twice.
    text, buffer = found.text(), 4 * (found.parameters + 3)
    assert all_reduced_bytes(found.parameters) == buffer  # the text shows three digits
    assert value(text, "gradients, in one buffer") == f"{buffer / 1e6:.1f} MB"
    assert value(text, "sent by each replica, in a ring") == f"{1.75 * buffer / 1e6:.1f} MB"
    assert [sent_bytes(600, replicas) for replicas in (2, 3, 8)] == [600, 800, 1050]


def test_one_replica_exchanges_nothing():
    assert "all-reduce" not in described().text()


@pytest.mark.parametrize("gigabytes", [0.1, 1, 40])
@pytest.mark.parametrize("changes", ["", "batch_size=7,recompute_grad=1,gradient_accumulation_steps=2"])
def test_the_largest_batch_fits_and_one_token_more_does_not(gigabytes, changes):
    hparams = TINY.parse(changes)
    model = shapes_only(registry.model("transformer"), hparams, VOCAB)
    largest = largest_batch_size(training_memory(model, hparams, SENTENCES), hparams.batch_size, 1e9 * gigabytes)

    def needed(batch_size):
        return sum(training_memory(model, hparams.parse(f"batch_size={batch_size}"), SENTENCES).values())

    assert needed(largest) <= 1e9 * gigabytes < needed(largest + 1)
    text = described(hparams, gpu_memory=gigabytes).text()
    assert value(text, f"largest batch_size in {gigabytes:g} GB") == f"{largest:,}"


def test_no_batch_fits_beside_weights_that_fill_the_memory():
    found = described(gpu_memory=0.001)
    fixed = sum(found.memory[name] for name in ("weights", "gradients", "optimizer"))
    assert fixed > 1e6
    said = value(found.text(), "largest batch_size in 0.001 GB")
    assert said == f": none fits; weights, gradients and optimizer take {fixed / 1e6:.1f} MB"


def test_a_batch_size_is_one_that_hparams_take():
    text = described(gpu_memory=1e6).text()
    largest = value(text, "largest batch_size in 1e+06 GB").replace(",", "")
    assert TINY.parse(f"batch_size={largest}").batch_size == int(largest)


@pytest.mark.parametrize(
    "kind, seen",
    registered(
        [
            ("restricted,attention_neighborhood=40", 40),
            ("strided,attention_stride=40", 2 * 40 + 1024 // 40),
            ("fixed,attention_stride=32,attention_summary=2", 32 + 2 * 1024 // 32),
            ("local_1d,block_length=48", 96),
            ("local_2d,block_height=4,block_width=4,image_width=32", 5 * 16),
        ]
    ),
)
def test_patterns_count_the_scores_that_are_made(kind, seen):
    model_class = registry.model("transformer_lm")
    tiny = registry.hparams("transformer_lm_tiny").of_model(model_class)
    full, sparse = (
        forward_flops(shapes_only(model_class, tiny.parse(changes), VOCAB), {"targets": 1024}).per_token["targets"]
        for changes in ("", f"self_attention_type={kind}")
    )
    assert full - sparse == tiny.num_hidden_layers * 2 * 2 * tiny.hidden_size * (1024 - seen)


@pytest.mark.slow
def test_of_experts_those_count_that_compute_a_position():
    pytest.importorskip("t2t_lite.extras.experts")
    model_class = registry.model("transformer")
    changes = "ffn_layer=local_moe,moe_num_experts={},moe_k={}"
    one, two, more = (
        forward_flops(
            shapes_only(model_class, TINY.of_model(model_class).parse(changes.format(*counts)), VOCAB), SENTENCES
        )
        for counts in ((4, 1), (4, 2), (16, 2))
    )
    d, filter_size, layers = 128, 512, 2
    for side in SENTENCES:
        assert two.per_token[side] - one.per_token[side] == layers * 2 * 2 * d * filter_size
        assert more.per_token[side] - two.per_token[side] == layers * 2 * d * (16 - 4)


ENCODER, DECODER = 2 * (4 * 32**2 + 2 * 32 * 80) + 4 * 32 * 25, 2 * (6 * 32**2 + 2 * 32 * 80) + 8 * 32 * 25
MEMORY, SOFTMAX = 4 * 32**2, 2 * 32 * VOCAB  # keys and values of the encoder's output; a tied embedding


@pytest.mark.parametrize(
    ("frozen", "inputs", "targets"),
    [
        # Below all that is trained nothing has a gradient: two forward passes are saved.
        ("embedding/encoder", 2 * 2 * ENCODER, SOFTMAX),
        ("embedding/encoder/decoder_0", 2 * 2 * ENCODER + 2 * MEMORY, 2 * DECODER + SOFTMAX),
        # Above it, only the gradients of kernels are saved; attention's products have none.
        ("encoder", 2 * (ENCODER - 4 * 32 * 25), 0), ("embedding", 0, SOFTMAX),
        ("decoder", 2 * MEMORY, 2 * (DECODER - 8 * 32 * 25)),
        ("embedding/decoder", 2 * MEMORY, 2 * (DECODER - 8 * 32 * 25) + SOFTMAX),
    ],
)  # fmt: skip
def test_what_frozen_weights_save_in_closed_form(frozen, inputs, targets):
    changes = f"hidden_size=32,filter_size=80,num_heads=4,num_hidden_layers=2,frozen={frozen}"
    model = shapes_only(registry.model("transformer"), HParams().parse(changes), VOCAB)
    flops = forward_flops(model, SENTENCES)
    assert flops.per_token == {"inputs": 2 * (ENCODER + MEMORY), "targets": 2 * DECODER + SOFTMAX}
    assert flops.saved == {"inputs": inputs, "targets": targets}
    assert flops.training(7) == 7 * (3 * sum(flops.per_token.values()) - inputs - targets)


class Doubled(keras.layers.Layer):
    """Multiplies by a matrix of its own, twice."""

    def build(self, shape):
        self.matrix = self.add_weight(name="matrix", shape=(shape[-1], shape[-1]))

    def flops(self, length):
        return 2 * 2 * self.matrix.shape[0] ** 2 + length

    def call(self, x):
        return (x @ self.matrix) @ self.matrix


class Various(SequenceModel):
    """Has no stacks: LSTMs on one side, a convolution and a layer that answers itself on the other."""

    def __init__(self, vocab_size):
        super().__init__()
        self.vocab_size = self.target_vocab_size = vocab_size
        self.softmax = TokenEmbedding(vocab_size, 8)
        self.encoder = keras.layers.Bidirectional(keras.layers.LSTM(6, return_sequences=True), name="encoder_lstm")
        self.convolution, self.doubled = keras.layers.Conv1D(10, 3, padding="causal"), Doubled()

    def build(self, input_shape=None):
        if not self.built:
            self.softmax.build()
            self.encoder.build((None, None, 8))
            self.convolution.build((None, None, 8))
            self.doubled.build((None, None, 10))
            self.built = True

    def token_embeddings(self):
        return {"inputs": self.softmax, "targets": self.softmax}

    def call(self, inputs, training=None):
        memory = keras.ops.mean(self.encoder(self.softmax(inputs["inputs"])), axis=1, keepdims=True)[..., :8]
        return self.softmax(
            self.doubled(self.convolution(self.softmax(inputs["targets"]) + memory))[..., :8], reverse=True
        )


def test_a_model_without_stacks_is_counted_layer_by_layer():
    model = Various(20)
    model({"inputs": np.ones((1, 3), "int32"), "targets": np.ones((1, 3), "int32")})
    found = Description(model, TINY)
    lstm, convolution, doubled = 2 * 2 * (8 + 6) * 4 * 6, 2 * 3 * 8 * 10, 2 * 2 * 10 * 10 + 25
    assert found.flops.per_token == {"inputs": lstm, "targets": convolution + doubled + 2 * 20 * 8}
    assert found.memory is None and "memory: not estimated, because the model's stacks()" in found.text()
    assert value(found.text(), "forward, per source token") == "1.34e03"
