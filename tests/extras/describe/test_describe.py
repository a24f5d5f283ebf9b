"""--describe's library: shapes without values, operations and memory against what a traced step really has."""

import math
import re

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.extras.describe.cost import PAPER, forward_flops, training_memory
from t2t_lite.extras.describe.describe import Description, shapes_only
from t2t_lite.models import Transformer
from t2t_lite.settings.config import HParams
from t2t_lite.training.losses import cross_entropy
from tests.models.own_model import Called, OwnLanguageModel, OwnModel, WithValues
from tests.models.products import matrix_product_flops

VOCAB, ROWS, LENGTH = 50, 7, 11  # a batch has 77 tokens: no weight has a multiple of it elements
SENTENCES = {"inputs": 25, "targets": 25}
SMALL = HParams().parse("hidden_size=32,filter_size=80,num_heads=4,num_hidden_layers=1")
RELATIVE = "self_attention_type=dot_product_relative,max_relative_position=2,pos=none"
OPTIONS = {
    "paper": "",
    "tensor2tensor": "layer_preprocess_sequence=n,layer_postprocess_sequence=da,attention_dropout=0.1,relu_dropout=0.1",
    "no_dropout": "layer_prepostprocess_dropout=0",
    "own_head_sizes": "attention_key_channels=12,attention_value_channels=20,attention_bias=1",
    "depths": "num_encoder_layers=1,num_decoder_layers=2",
    "untied": "shared_embedding_and_softmax_weights=0,pos=emb",
    "gelu": "ffn_activation=gelu",
    "swiglu": "ffn_activation=swiglu,relu_dropout=0.1",
    "relative": RELATIVE,
    "relative_values": RELATIVE + ",add_relative_to_values=1,attention_dropout=0.1",
    "restricted": "self_attention_type=restricted,attention_neighborhood=16",
    "bfloat16": "dtype_policy=mixed_bfloat16,attention_dropout=0.1",
    "float16": "dtype_policy=mixed_float16",
}


def trace(hparams, source_length, target_length, model_class=Transformer):
    """Returns a model, the operations of its training step on a batch, and how many of them are the forward pass."""
    model, forward = model_class.from_hparams(hparams, VOCAB), []

    def step(inputs, targets):
        variables = [v.value for v in model.trainable_variables]
        with tf.GradientTape(watch_accessed_variables=False) as tape:  # as the trainer's
            tape.watch(variables)
            logits = model({"inputs": inputs, "targets": targets}, training=True)
            loss, _ = cross_entropy(logits, targets, hparams.label_smoothing)
        forward.append(len(tf.compat.v1.get_default_graph().get_operations()))
        return tape.gradient(loss, variables, unconnected_gradients="zero")

    signature = [tf.TensorSpec([ROWS, length], tf.int32) for length in (source_length, target_length)]
    graph = tf.function(step, input_signature=signature, autograph=False).get_concrete_function().graph
    return model, graph.get_operations(), forward[0]


@pytest.fixture(scope="module", params=OPTIONS)
def traced(request):
    hparams = SMALL.parse(OPTIONS[request.param])
    spread = 0.1 if request.param.startswith("relative") else 0  # see forward_flops
    return hparams, spread, *trace(hparams, LENGTH, LENGTH)


@pytest.mark.few("depths", "swiglu", "relative_values", "bfloat16")
@pytest.mark.slow
def test_operations_are_those_of_the_traced_step(traced):
    _, spread, model, operations, forward = traced
    counted = forward_flops(model, {"inputs": LENGTH, "targets": LENGTH})
    expected = matrix_product_flops(operations[:forward])
    assert ROWS * LENGTH * sum(counted.per_token.values()) == pytest.approx(expected, rel=spread)
    training = counted.training(ROWS * LENGTH)
    assert training == pytest.approx(matrix_product_flops(operations), rel=spread or 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("changes", ["frozen=embedding/encoder", "lora_rank=4"])
def test_what_frozen_weights_save_is_counted_but_for_the_lowest_layer(changes):
    hparams = SMALL.parse(f"num_hidden_layers=2,{changes}")
    model, operations, forward = trace(hparams, LENGTH, LENGTH)
    counted, tokens = forward_flops(model, {"inputs": LENGTH, "targets": LENGTH}), ROWS * LENGTH
    assert tokens * sum(counted.per_token.values()) == matrix_product_flops(operations[:forward])
    assert 1 < counted.training(tokens) / matrix_product_flops(operations) < 1.1
    described, memory = Description(model, hparams), training_memory(model, hparams, SENTENCES)
    trained = sum(math.prod(weight.shape) for weight in model.trainable_weights)
    assert described.parameters - described.trained_parameters == sum(
        math.prod(weight.shape) for weight in model.non_trainable_weights
    )
    assert f"trained {trained:,}" in " ".join(described.text().split())
    assert (memory["weights"], memory["gradients"]) == (4 * described.parameters, 4 * trained)
    assert memory["optimizer"] == 8 * trained
    assert_memory(kept_for_gradients(operations, forward), model, hparams)


@pytest.mark.slow
def test_either_side_counts_its_own_tokens():
    model, operations, forward = trace(SMALL.parse(OPTIONS["depths"]), LENGTH, 4)
    flops = forward_flops(model, {"inputs": LENGTH, "targets": 4}).per_token
    assert ROWS * (LENGTH * flops["inputs"] + 4 * flops["targets"]) == matrix_product_flops(operations[:forward])


def kept_for_gradients(operations, forward):
    """The bytes of the forward pass that the backward pass reads."""
    before, kept = set(operations[:forward]), {}
    for tensor in (tensor for op in operations[forward:] for tensor in op.inputs):
        while tensor.op.type in ("Reshape", "Identity", "ExpandDims") and tensor.op in before:  # the same memory
            tensor = tensor.op.inputs[0]
        elements = math.prod(tensor.shape) if tensor.shape.is_fully_defined() else 0
        if tensor.op in before and elements % (ROWS * LENGTH) == 0:  # not a weight, nor a copy of one
            kept[tensor.name] = elements * tensor.dtype.size
    return sum(kept.values())


def assert_memory(kept, model, hparams):
    lengths = {"inputs": LENGTH, "targets": LENGTH}
    estimate = training_memory(model, hparams.parse(f"batch_size={ROWS * LENGTH}"), lengths)
    logits = estimate["logits"] / 3  # of the three, only the logits themselves are there before the backward pass
    assert kept == pytest.approx(estimate["activations"] + logits, rel=0.1)


@pytest.mark.slow
@pytest.mark.few("depths", "swiglu", "relative_values", "bfloat16")
def test_memory_is_what_the_traced_step_keeps_for_its_gradients(traced):
    hparams, _, model, operations, forward = traced
    assert_memory(kept_for_gradients(operations, forward), model, hparams)


@pytest.mark.slow
@pytest.mark.parametrize("changes", ["", "shared_embedding_and_softmax_weights=0,num_encoder_layers=2"])
def test_a_model_of_one_stack_is_counted_by_what_it_tells(changes):
    hparams = SMALL.parse(changes)
    model, operations, forward = trace(hparams, 0, LENGTH, OwnLanguageModel)
    flops = forward_flops(model, {"targets": LENGTH})
    assert flops.per_token == {"targets": matrix_product_flops(operations[:forward]) / (ROWS * LENGTH)}
    assert_memory(kept_for_gradients(operations, forward), model, hparams)
    described = Description(model, hparams.parse("max_length=128,batch_size=1024"))
    assert described.embedding_parameters == VOCAB * 32 * (2 if changes else 1)
    for words in ("rows of 128 tokens", "  forward, per token", "one step of 1,024 tokens", "estimated, 1,024 tokens"):
        assert words in described.text()
    assert "source" not in described.text()


def test_memory_of_weights_gradients_and_optimizer():
    model = shapes_only(Transformer, SMALL, VOCAB)
    weights = sum(math.prod(w.shape) for w in model.trainable_weights)
    base = training_memory(model, SMALL, SENTENCES)
    assert (base["weights"], base["optimizer"]) == (4 * weights, 8 * weights)
    assert base["gradients"] == 4 * (weights + VOCAB * 32)
    for changes, copies in (("optimizer=sgd", 0), ("ema_decay=0.9", 3), ("optimizer=sgd,ema_decay=0.9", 1)):
        assert training_memory(model, SMALL.parse(changes), SENTENCES)["optimizer"] == 4 * copies * weights
    accumulated = training_memory(model, SMALL.parse("gradient_accumulation_steps=3"), SENTENCES)
    assert accumulated["gradients"] == base["gradients"] + 4 * weights


@pytest.mark.parametrize(
    ("policy", "stored", "copies", "computed"),
    [("mixed_bfloat16", 4, 2, 2), ("bfloat16", 2, 0, 2), ("float64", 8, 0, 8)],
)
def test_memory_in_other_dtypes(policy, stored, copies, computed):
    of_float32, of_policy = (
        training_memory(shapes_only(Transformer, hparams, VOCAB), hparams, SENTENCES)
        for hparams in (SMALL, SMALL.parse(f"dtype_policy={policy}"))
    )
    assert of_policy["weights"] == of_float32["weights"] * (stored + copies) / 4
    assert of_policy["gradients"] == of_float32["gradients"] * stored / 4
    assert of_policy["optimizer"] == of_float32["optimizer"] * stored / 4
    assert (of_policy["activations"] > of_float32["activations"]) == (computed > 4)


@pytest.mark.parametrize(("model_class", "more"), [(Called, 0), (WithValues, 3)])
def test_a_users_own_model_is_described_too(model_class, more):
    model = shapes_only(model_class, SMALL, VOCAB)
    described = Description(model, SMALL)
    assert described.parameters == VOCAB * 32 + 33 * VOCAB + more
    assert sum(part.parameters for part in described.parts) == described.parameters
    assert (described.flops, described.memory) == (None, None)
    assert "FLOPs and memory: not counted, because the model is not a SequenceModel" in described.text()


@pytest.mark.parametrize("changes", ["", OPTIONS["depths"], OPTIONS["untied"], OPTIONS["tensor2tensor"]])
def test_parts_add_up(changes):
    hparams = SMALL.parse(changes)
    described = Description(shapes_only(Transformer, hparams, VOCAB, 30), hparams)
    assert sum(len(part.names) * part.parameters for part in described.parts) == described.parameters
    matrices = 2 if hparams.shared_embedding_and_softmax_weights else 3
    assert described.embedding_parameters == (VOCAB + (matrices - 1) * 30) * 32
    depths = (hparams.num_encoder_layers or 1, hparams.num_decoder_layers or 1)
    for side, depth in zip(("encoder_0", "decoder_0"), depths, strict=True):
        (part,) = [part for part in described.parts if part.names[0] == side]
        assert len(part.names) == depth


def test_layers_that_share_weights_count_each_time_and_only_masked_positions_have_logits():
    model_class = registry.model("transformer_encoder")
    own, shared = (SMALL.of_model(model_class).parse(f"num_hidden_layers=6,num_hidden_groups={g}") for g in (0, 2))
    one, two = (Description(shapes_only(model_class, hparams, VOCAB), hparams) for hparams in (own, shared))
    assert two.flops == one.flops
    assert {name for name in one.memory if one.memory[name] == two.memory[name]} == {"activations", "logits"}
    (layers,) = [part for part in two.parts if "encoder_0" in part.names]
    assert (layers.names, layers.calls) == (("encoder_0", "encoder_1"), 3)
    assert one.parameters - two.parameters == 4 * layers.parameters
    assert "encoder_0 … encoder_1, each, run 3 times" in two.text()
    longer = Description(shapes_only(model_class, own, 2 * VOCAB), own)
    assert longer.flops.per_token["inputs"] - one.flops.per_token["inputs"] == pytest.approx(0.15 * 2 * VOCAB * 32)
    assert longer.memory["logits"] == 2 * one.memory["logits"] == round(0.15 * own.batch_size * 12 * 2 * VOCAB)


@pytest.mark.parametrize(
    ("name", "paper", "counted"), [("transformer_base_v1", 3.3e18, 9.5e17), ("transformer_big_v1", 2.3e19, 9.6e18)]
)
def test_the_papers_estimate_is_reproduced_beside_the_count(name, paper, counted):
    assert PAPER[name].flops == pytest.approx(paper, rel=0.01)  # table 2
    assert PAPER["transformer_big_enfr_v1"] == PAPER["transformer_big_v1"]
    hparams = registry.hparams(name)
    model = shapes_only(Transformer, hparams, 37_000)
    text = Description(model, hparams, name).text()
    (line,) = [line for line in text.splitlines() if "counted for its" in line]
    assert float(line.split()[-1]) == pytest.approx(counted, rel=0.01)
    # Six operations for each weight in a matrix and pair of tokens, and a hundredth more for attention.
    weights = sum(math.prod(w.shape) for w in model.trainable_weights)
    assert float(line.split()[-1]) == pytest.approx(6 * weights * PAPER[name].steps * 25_000, rel=0.02)
    (line,) = [line for line in text.splitlines() if "utilization" in line]
    assert float(line.split()[-1].removesuffix("%")) == pytest.approx(100 * counted / paper, abs=1)


def test_the_papers_estimate_is_only_for_its_own_models():
    changed = registry.hparams("transformer_base_v1").parse("num_hidden_layers=1")
    assert (
        "the paper" not in Description(shapes_only(Transformer, changed, VOCAB), changed, "transformer_base_v1").text()
    )


def test_the_schedule_counts_steps_replicas_and_accumulation():
    hparams = SMALL.parse("batch_size=100,gradient_accumulation_steps=3")
    model = shapes_only(Transformer, hparams, VOCAB)
    described = Description(model, hparams, train_steps=10, replicas=2)
    assert described.tokens_a_step == 600
    assert described.schedule_flops == 10 * 3 * 600 * sum(described.flops.per_token.values())
    text = " ".join(described.text().split())
    source, target = described.flops.per_token.values()
    for words, number in (
        ("forward, per source token", source), ("forward, per target token", target),
        ("training, per source and target token", 3 * (source + target)),
        ("one step of 600 source + 600 target tokens (2 replicas, accumulation 3)", 1800 * (source + target)),
        ("10 steps", 18_000 * (source + target)),
    ):  # fmt: skip
        assert f"{words} {number:.2e}".replace("e+", "e") in text, words
    assert "sentences of 25 + 25 tokens" in text
    sizes = {"weights": 4, "gradients": 8, "optimizer": 8}
    counts = {
        name: size * described.parameters + 4 * VOCAB * 32 * (name == "gradients") for name, size in sizes.items()
    }
    assert (
        "memory per replica, estimated, 100 source + 100 target tokens weights {} gradients {} optimizer {}".format(
            *(f"{count / 1e6:.1f} MB" for count in counts.values())
        )
        in text
    )


def test_a_users_setting_stands_with_its_meaning():
    hparams = SMALL.of_model(OwnModel).parse("window=9")
    text = Description(shapes_only(OwnModel, hparams, 20), hparams).text()
    assert re.search(r"^  window=9 +Positions of the window\.$", text, re.MULTILINE)
