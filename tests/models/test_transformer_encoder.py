"""Encoders: heads, segments, the loss of masked ids, and sizes."""

# Nearest tests of: t2t_lite/models/encoder_model.py

import math

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import registry
from t2t_lite.models import TransformerEncoder
from t2t_lite.models.fine_tuning import parameters as parameters_of
from t2t_lite.models.shapes_only import shapes_only
from tests.models import every_model
from tests.models.model_rows import INPUTS, LM, VOCAB, padded

SMALL = {"vocab_size": VOCAB, "hidden_size": 16, **LM, "max_position": 32}
ROWS = {row.reads: row for row in every_model.ROWS.values() if row.name == "transformer_encoder"}  # by head


@pytest.fixture(scope="module", params=ROWS)
def head(request):
    return request.param


@pytest.fixture(scope="module")
def model(head):
    keras.utils.set_random_seed(3)
    made = ROWS[head].unbuilt(initializer_gain=0.3)
    made.build()
    return made


def logits_of(model, batch):
    found = model(batch, training=False)
    found = found if isinstance(found, dict) else {"targets": found}
    return {feature: ops.convert_to_numpy(logits) for feature, logits in found.items()}


def test_every_position_sees_the_whole_row(model, head):
    if head in ("masked_lm", "span"):
        pytest.skip("its logits are of several positions each, or of some alone")
    of_id_0 = 0 if head == "real" else 1
    before = logits_of(model, ROWS[head].batch())["targets"]
    changed = ROWS[head].batch()
    changed["inputs"][0, 5] = 12
    after = logits_of(model, changed)["targets"]
    np.testing.assert_allclose(after[1:], before[1:], atol=1e-5)
    assert (np.abs(after[0] - before[0])[..., of_id_0:].max(axis=-1) > 1e-4).all()


def test_the_loss_of_masked_positions_is_that_of_all_positions():
    objectives = pytest.importorskip("t2t_lite.training.objectives", reason="it needs TensorFlow")
    keras.utils.set_random_seed(4)
    model = TransformerEncoder(**SMALL, initializer_gain=0.3)
    batch = ROWS["masked_lm"].batch()
    counts = {"targets": float(np.count_nonzero(batch["targets"]))}

    def loss(logits):
        return float(objectives.mean_loss(objectives.objective_sums(logits, batch, 0.1), counts))

    every = model.ids_logits(model.encode(batch["inputs"])["hidden"][:, 1:])
    assert every.shape == (*batch["targets"].shape, VOCAB)
    assert loss(model(batch)) == pytest.approx(loss(every), abs=1e-6)


def test_no_class_has_the_id_of_padding(model, head):
    logits = logits_of(model, ROWS[head].batch())
    for feature, found in logits.items():
        if (head, feature) not in (("masked_lm", "targets"), ("real", "targets")):
            assert (np.argmax(found, -1) > 0).all() and (found[..., 0] < -1e8).all()


def test_the_loss_of_numbers_is_the_squared_error():
    objectives = pytest.importorskip("t2t_lite.training.objectives", reason="it needs TensorFlow")
    logits = np.array([[0.5], [0.25], [-1.0]], "float32")
    sums = objectives.objective_sums(logits, {"targets": np.array([1, 2**16, 0], "int32")}, 0.1)
    assert float(sums.objective["targets"]) == float(sums.nats["targets"]) == pytest.approx(0.5**2 + 0.75**2)


def test_a_span_lies_in_its_row():
    keras.utils.set_random_seed(4)
    probabilities = ops.softmax(ROWS["span"].unbuilt()(ROWS["span"].batch()))
    for row, ids in enumerate(INPUTS):
        assert ops.convert_to_numpy(probabilities)[row, :, 1 : 1 + len(ids)].sum(-1) == pytest.approx(1, abs=1e-6)


def test_a_class_is_read_from_the_mean_and_the_maximum_of_the_row():
    keras.utils.set_random_seed(4)
    model = TransformerEncoder(**SMALL, head="class", target_vocab_size=4, pooling="mean_max", initializer_gain=0.3)
    batch = ROWS["class"].widened(ROWS["class"].batch())
    logits = logits_of(model, batch)["targets"]
    hidden = ops.convert_to_numpy(model.encode(batch["inputs"])["hidden"])
    for row, ids in enumerate(INPUTS):
        states = hidden[row, 1 : 1 + len(ids)]
        pooled = np.concatenate([states.mean(axis=0), states.max(axis=0)])[None]
        np.testing.assert_allclose(logits[row], ops.convert_to_numpy(model.class_head(pooled))[0], atol=1e-5)


@pytest.mark.parametrize("options", [{"head": "class"}, {"head": "class", "pooling": "mean_max"}, {"head": "tag"}])
def test_what_a_head_reads_is_dropped_in_training_alone(options):
    model = TransformerEncoder(**SMALL, target_vocab_size=4, dropout=0.5, **options)
    model.build()
    batch = {"inputs": padded(INPUTS)}
    hidden = np.random.default_rng(0).normal(size=(*batch["inputs"].shape, 16)).astype("float32")
    hidden = np.pad(hidden, ((0, 0), (1, 0), (0, 0)), constant_values=1.0)
    found = [ops.convert_to_numpy(model.head_logits(hidden, batch, training=t)) for t in (False, False, True)]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2])


def test_segments_are_counted_by_the_ends_before():
    keras.utils.set_random_seed(5)
    model = TransformerEncoder(**SMALL, head="class", target_vocab_size=3, num_segments=2, position="none")
    table = model.segment_embedding
    model.build()
    ids = np.array([[5, 1, 6, 1, 7, 0]], "int32")
    states = model.encode(ids, return_hidden_states=True)["states"][0]
    x = model.embedding(np.pad(ids, ((0, 0), (1, 0)))) + table(np.array([[0, 0, 0, 1, 1, 1, 1]]))
    np.testing.assert_allclose(*map(ops.convert_to_numpy, (states, model.embedding_norm(x))), atol=1e-6)


def test_the_first_id_may_be_too_large_for_the_dtype_of_the_ids():
    model = TransformerEncoder(**SMALL | {"vocab_size": 400}, head="class", target_vocab_size=3, first_id=300)
    expected, found = (model({"inputs": padded(INPUTS).astype(dtype)}) for dtype in ("int32", "uint8"))
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (found, expected)))


def test_ids_of_another_segment_match():
    keras.utils.set_random_seed(5)
    model = TransformerEncoder(
        **SMALL, head="class", target_vocab_size=3, num_segments=2, match_embedding=True, first_id=7, position="none"
    )
    model.build()
    # 5 is twice in one segment; 2 (unknown), 1 (ends) and 0 (padding) never match; the table of segments has two rows.
    row = np.array([[7, 5, 5, 6, 2, 1, 6, 2, 9, 1, 8, 9, 1, 0, 0]], "int32")
    match = np.array([[0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0]])
    segments = np.array([[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]])
    states = model.encode(row[:, 1:], return_hidden_states=True)["states"][0]
    x = model.embedding(row) + model.segment_embedding(segments) + model.match_embedding(match)
    np.testing.assert_allclose(*map(ops.convert_to_numpy, (states, model.embedding_norm(x))), atol=1e-6)
    (table,) = model.match_embedding.weights
    assert any(weight is table for weight in model.head_weights()), "it may be new where weights are taken over"


def test_the_weights_of_a_head_are_those_that_another_task_may_lack(model, head):
    paths = {weight.path.split("/", 1)[1] for weight in model.weights}
    named = ("ids_head/", "class_head/", "span_head/", "sentence_head/", "match_embedding/", "embedding/bias")
    of_head = {path for path in paths if path.startswith(named)}
    assert {weight.path.split("/", 1)[1] for weight in model.head_weights()} == of_head != set()
    assert {path.split("/")[0] for path in of_head} == {
        "masked_lm": {"ids_head", "sentence_head", "embedding"}, "class": {"class_head", "match_embedding"},
        "tag": {"class_head"}, "real": {"class_head"}, "span": {"span_head"},
    }[head]  # fmt: skip


def test_the_longest_row_fills_the_table_of_positions():
    model, positions = TransformerEncoder(**SMALL), SMALL["max_position"]
    ids = np.full((1, positions), 5, "int32")
    assert model.encode(ids[:, : model.max_length])["hidden"].shape[1] == positions
    with pytest.raises(ValueError, match=f"A sequence of {positions + 1} positions is longer than the learned table"):
        model.encode(ids[:, : model.max_length + 1])


@pytest.mark.parametrize(
    "name, vocab_size, parameters",
    [  # Hugging Face's counts of …ForPreTraining and RobertaForMaskedLM, without the rows that we have not
        ("bert_base", 30_522, 110_106_428),
        ("bert_large", 30_522, 336_226_108),
        ("roberta_base", 50_265, 124_697_433 - 2 * 768),  # two positions before the first
        ("albert_base", 30_000, 11_813_810),
        ("albert_large", 30_000, 17_847_474),
        ("albert_xlarge", 30_000, 59_021_490),
        ("albert_xxlarge", 30_000, 223_158_450),
        ("ernie_base", 30_522, 110_108_732),
    ],
)
def test_parameters_are_as_many_as_published(name, vocab_size, parameters):
    hparams = registry.hparams(name)
    hparams = hparams.of_model(TransformerEncoder)
    if not name.startswith("roberta"):
        hparams.sentence_classes = 2
    model = shapes_only(TransformerEncoder, hparams, vocab_size)
    assert sum(math.prod(weight.shape) for weight in parameters_of(model)) == parameters


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"head": "words"}, "head='words'"),
        ({"head": "class"}, "target_vocab_size of at least 2: received None"),
        ({"head": "tag", "target_vocab_size": 1}, "received 1"),
        ({"embedding_size": 0}, "embedding_size=0"),
        ({"num_hidden_groups": 3}, "num_hidden_groups=3"),
        ({"first_id": VOCAB}, "from 0 to 19: received first_id=20"),
        ({"first_id": "a"}, "from 0 to 19: received first_id='a'"),
        ({"num_segments": -1}, "`num_segments` must be an integer of at least 1"),
        ({"sentence_classes": -1}, "`sentence_classes` must be an integer of at least 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransformerEncoder(**{**SMALL, **arguments})


@pytest.mark.parametrize("head, pooler, classes", [("class", True, 3), ("tag", False, 3), ("real", True, 1)])
def test_a_pooler_is_for_whole_rows(head, pooler, classes):
    own = ROWS[head].unbuilt(dropout=0.3, pooler_activation="relu").class_head
    assert (own.has_pooler, own.num_classes, own.dropout.rate) == (pooler, classes, 0.3)
    assert float(own.pooler_activation(keras.ops.convert_to_tensor(-5.0))) == 0  # not tanh


def test_masked_ids_need_a_target_at_each_position():
    model = TransformerEncoder(20, num_layers=1, hidden_size=8, num_heads=2, filter_size=8)
    with pytest.raises(ValueError, match=r"lengths .*'inputs': 5, 'targets': 4"):
        model({"inputs": np.ones((2, 5), "int32"), "targets": np.ones((2, 4), "int32")})
