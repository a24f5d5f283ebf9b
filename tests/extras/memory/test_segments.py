"""Batches of segments continue one another, in training by lanes; an evaluation reads the text in order."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.memory.segments import SegmentBatches
from t2t_lite.models.outputs import batches_of
from t2t_lite.settings.config import HParams
from t2t_lite.settings.reserved_names import BEFORE
from t2t_lite.training.evaluator import Evaluator
from tests.extras.memory.carried import LENGTH, PROBLEM, ROWS, hparams, numbers, records, source
from tests.training.runs import given_records


@pytest.mark.slow
def test_a_batch_of_a_step_continues_the_one_of_the_step_before_or_begins(data, tmp_path):
    lanes, paths = 3, records(data, "train").paths
    rows = {tuple(row["targets"]) for row in records(data, "train").examples(hparams())}
    batches = source(data, lanes).training(paths, {})
    found = numbers(batches, 6 * lanes)
    for step in (0, 3):
        for lane in range(lanes):
            parts = [found[(step + i) * lanes + lane] for i in range(3)]
            for row in range(ROWS):
                ids = [part["targets"][row] for part in parts]
                assert tuple(itertools.chain(*ids)) in rows
                assert [part[BEFORE][row] for part in parts] == [0, ids[0][-1], ids[1][-1]]
    every = numbers(source(data).training(paths, {}), 150)
    assert np.all([batch["targets"] for batch in every])  # no padding: the text's last row, a shorter one, is left out
    iterator = iter(batches)
    numbers(iterator, 4)  # in the midst of a step, and of a row
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "position"))
    restored = iter(source(data, lanes).training(paths, {}))
    tf.train.Checkpoint(iterator=restored).read(path)
    assert numbers(restored, 9) == numbers(iterator, 9) == found[4:13]


def test_an_evaluation_reads_a_text_in_order_in_as_many_parts_as_a_batch_has_rows(data):
    paths = records(data, "eval").paths
    text = [i for row in records(data, "eval").examples(hparams()) for i in row["targets"]]
    batches = numbers(source(data).evaluation(paths, in_order=True), 99)
    parts = [[i for batch in batches for i in batch["targets"][row]] for row in range(ROWS)]
    assert [i for part in parts for i in part if i] == text
    assert [len(part) for part in parts] == [28] * ROWS
    assert batches[0][BEFORE] == [0, *(part[-1] for part in parts[:-1])]
    assert all(b[BEFORE] == [row[-1] for row in a["targets"]] for a, b in itertools.pairwise(batches))
    wide = source(data, 1, f"batch_size={200 * LENGTH}")  # more rows than the text has segments
    (batch,) = numbers(wide.evaluation(paths, in_order=True), 99)
    assert np.shape(batch["targets"]) == (200, LENGTH) and len(batch[BEFORE]) == 200
    assert [i for row in batch["targets"] for i in row if i] == text
    begun = numbers(source(data).evaluation(paths), 99)
    assert [batch[BEFORE] == [0] * ROWS for batch in begun] == [True, False, False] * 3
    assert sum(np.count_nonzero(batch["targets"]) for batch in begun) == len(text)


@pytest.mark.slow
def test_an_evaluation_in_segments_is_that_of_the_text_in_one_pass(data):
    problem, paths = registry.problem(PROBLEM), records(data, "eval").paths
    encoders = problem.get_feature_encoders(data)
    model = registry.model("user_memory").from_hparams(hparams(), encoders["targets"].vocab_size)
    one = hparams(f"batch_size={LENGTH}")
    found = Evaluator(model, encoders, one, given_records(problem, paths))().metrics
    text = np.array([[i for row in records(data, "eval").examples(one) for i in row["targets"]]])
    # By hand: what is summed up fades by a quarter after each segment.
    table, (kernel, bias) = model.embedding(np.arange(258)[None]).numpy()[0], model.dense.get_weights()
    sums, nats = np.zeros(8), []
    for at, target in enumerate(text[0]):
        sums = (sums * (0.75 if at and at % LENGTH == 0 else 1)) + table[text[0, at - 1] if at else 1]
        logits = model.softmax(np.tanh(sums @ kernel + bias)[None, None].astype("float32"), reverse=True).numpy()[0, 0]
        nats.append(np.log(np.exp(logits.astype("float64")).sum()) - logits[target])
    assert found["loss"] == pytest.approx(np.mean(nats), rel=1e-5)
    shown = Evaluator(model, encoders, one, given_records(problem, paths, "train"))().metrics
    assert shown["loss"] != pytest.approx(found["loss"], rel=1e-5)  # each row begins anew


@pytest.mark.parametrize(
    "more, message",
    [
        ("segment_length=12", "segment_length=12: .*user_memory_text has 12 ids.*a smaller divisor of 12"),
        ("segment_length=5", "segment_length=5: .*user_memory_text has 12 ids"),
        ("batch_size=3", "batch_size=3: .*segment_length=4 .*Expected 4 or more"),
        ("bpe_dropout=0.1", "bpe_dropout=0.1 .*Expected 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(data, more, message):
    with pytest.raises(UserError, match=message):
        source(data, more=more)


def test_sizes_of_batches(data):
    batches = source(data, more="batch_size=23")
    assert (batches.rows, batches.length, batches.rows_per_example, batches.longest) == (5, 4, 3, 4)
    assert batches.left_out == "shorter than 12 ids" and batches.features == {"targets": 2, BEFORE: 1}
    assert {name: x.shape for name, x in batches.narrowest().items()} == {"targets": (5, 4), BEFORE: (5,)}
    assert source(data, more="batch_size=4").rows == 1


def test_problems_and_models_that_do_not_fit_are_refused(data, monkeypatch):
    with pytest.raises(UserError, match="no hyperparameter segment_length"):
        SegmentBatches(registry.problem(PROBLEM), HParams())
    with pytest.raises(UserError, match=r"^algorithmic_reverse_decimal40: .*languagemodel_own"):
        SegmentBatches(registry.problem("algorithmic_reverse_decimal40"), hparams())
    monkeypatch.setitem(registry.Registries.batches._entries, "segments", None)
    registry.Registries.batches.remove("segments")
    with pytest.raises(UserError, match=r"^UserMemory .*state"):
        batches_of(registry.model("user_memory"))
