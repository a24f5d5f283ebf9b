"""What a run learns of its data before it makes a model."""

import concurrent.futures
import shutil
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import sharding
from t2t_lite.data.problem import DatasetSplit, Problem, TranslateProblem
from t2t_lite.errors import UserError
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.settings.config import HParams
from t2t_lite.settings.reserved_names import BEFORE
from t2t_lite.text.vocabulary import ByteTextEncoder, TextEncoder
from t2t_lite.training.training_data import (
    Feed,
    StepBatches,
    check_lengths,
    check_reads,
    open_training_data,
    several_sentences,
)

HPARAMS = HParams(batch_size=64, max_length=7, min_length=4)


@registry.register_problem("training_data_uneven")
class Uneven(Problem):
    """Inputs of 2 to 11 ids, targets of 2; another vocabulary on each side."""

    dataset_splits = [{"split": s, "shards": n} for s, n in ((DatasetSplit.TRAIN, 3), (DatasetSplit.EVAL, 2))]  # noqa: RUF012
    sizes = (40, 50)

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        for n in range(100):
            yield {"inputs": [30] * (n % 10 + 1) + [1], "targets": [45, 1]}

    def feature_encoders(self, data_dir):
        return {side: TextEncoder(size) for side, size in zip(("inputs", "targets"), self.sizes, strict=True)}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("data"))
    registry.problem("training_data_uneven").generate_data(folder, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["training_data_uneven", "training_data_uneven_rev"])
def test_it_is_that_of_the_problem_within_the_limits(data_dir, name):
    data = open_training_data(name, HPARAMS, data_dir)
    is_reversed = name.endswith("_rev")
    assert data.problem.full_name == name
    sizes = tuple(data.encoders[side].vocab_size for side in ("inputs", "targets"))
    assert sizes == ((50, 40) if is_reversed else (40, 50))
    assert data.records.split == DatasetSplit.TRAIN and len(data.records.paths) == 3
    assert data.dev_records.split == DatasetSplit.EVAL and len(data.dev_records.paths) == 2
    assert (data.examples, data.dropped, data.source.longest) == (40, 60, 7)  # of 4 to 7 ids
    long_side = "targets" if is_reversed else "inputs"
    for batch in data.batches.take(20):
        ids = batch[long_side].numpy()
        assert 4 <= ids.shape[1] <= 7 and ids.max() == 30, "the other side's ids are beyond its vocabulary"
        assert ids.size <= 64


def test_a_vocabulary_that_the_records_do_not_fit_is_refused(data_dir, monkeypatch):
    monkeypatch.setattr(Uneven, "sizes", (40, 60))
    with pytest.raises(UserError, match=r"this vocabulary \(60 entries"):
        open_training_data("training_data_uneven", HPARAMS, data_dir)


def test_a_run_without_evaluations_needs_no_dev_set(data_dir, tmp_path):
    train_only = shutil.copytree(data_dir, tmp_path / "data", ignore=shutil.ignore_patterns("*-dev-*"))
    with pytest.raises(UserError, match=r"-dev-.*: no such records"):
        open_training_data("training_data_uneven", HPARAMS, str(train_only))
    data = open_training_data("training_data_uneven", HPARAMS, str(train_only), evaluates=False)
    assert (data.examples, [*data.cut]) == (40, [DatasetSplit.TRAIN])


def test_the_batches_of_a_step_are_counted():
    one = {"inputs": np.array([[5, 6, 1], [7, 1, 0]]), "targets": np.array([[5, 1], [0, 0]]), BEFORE: np.ones((2, 4))}
    other = {"inputs": np.array([[9, 1]]), "targets": np.array([[8, 6, 1, 0]]), BEFORE: np.ones((1, 4))}
    batches = StepBatches([one, other], 5)
    assert (batches.end, batches.sentences, batches.cells) == (7, 3, 6 + 4 + 2 + 4)
    assert batches.counts == {"inputs": 7, "targets": 5, BEFORE: 12}


def test_a_feed_reads_in_turn_and_ahead_and_counts_how_long_it_is_waited_for(clock):
    def stream():
        for number in range(6):
            clock.advance(3.0)
            yield {"targets": np.full((1, 1), number)}

    step = types.SimpleNamespace(batches_a_step=2, place=lambda batches: ("placed", batches.first))
    with Feed(stream(), 40, step, ["a"], ("targets",)) as feed:
        first, placed = feed.take()
        assert (first.first, first.end, placed, feed.seconds_waited) == (40, 42, ("placed", 40), 6.0)
        feed.fetch_ahead()
        concurrent.futures.wait([feed._ahead])
        second, _ = feed.take()
        assert [batch["targets"].item() for batch in second.batches] == [2, 3] and feed.seconds_waited == 6.0
        assert feed.take()[0].first == 44 and feed.seconds_waited == 12.0


def test_a_damaged_record_is_named_by_whoever_takes_the_batch(tmp_path):
    def stream():
        raise tf.errors.DataLossError(None, None, "corrupted record at 12")
        yield

    (tmp_path / "a").write_bytes(b"x" * 30)
    step = types.SimpleNamespace(batches_a_step=1, place=lambda batches: None)
    with Feed(stream(), 0, step, [str(tmp_path / "a")], ("targets",)) as feed:
        feed.fetch_ahead()
        with pytest.raises(UserError, match=f"^{tmp_path}/a: damaged"):
            feed.take()


def test_a_model_has_positions_for_the_longest_rows():
    sizes = {"hidden_size": 8, "filter_size": 16, "num_heads": 2, "position": "learned", "max_position": 6}
    language_model = TransformerLM(20, num_layers=1, **sizes)
    encoder = TransformerEncoder(20, 3, head="class", num_layers=1, **sizes)  # a position comes before the ids
    for model, longest in ((language_model, 6), (encoder, 5)):
        check_lengths(model, longest, ["targets"])
        for max_length in (longest + 1, 0):
            with pytest.raises(UserError, match=f"max_length={max_length}: .* has room for {longest} ids"):
                check_lengths(model, max_length, ["targets"])
    check_lengths(language_model, 3, ["inputs", "targets"])
    with pytest.raises(UserError, match=r"room for 6 ids .*together.*Expected .* from 1 to 3"):
        check_lengths(language_model, 4, ["inputs", "targets"])
    check_lengths(encoder, 5, ["inputs", "targets"])
    check_lengths(TransformerLM(20, num_layers=1, **{**sizes, "position": "none", "begin": "end"}), 10**6, ["targets"])
    check_lengths(keras.Model(), 0, ["targets"])


def test_a_model_and_a_problem_fit_each_other():
    sizes = {"hidden_size": 8, "filter_size": 8, "num_heads": 2, "num_layers": 1}
    check_reads(TransformerEncoder(50, **sizes), Uneven())
    with pytest.raises(UserError, match=r"reads inputs, targets, sentence.* training_data_uneven has "):
        check_reads(TransformerEncoder(50, sentence_classes=2, **sizes), Uneven())
    with pytest.raises(UserError, match="whose targets are a row of ids per example"):
        check_reads(TransformerEncoder(50, target_vocab_size=3, head="class", **sizes), Uneven())
    problem = registry.problem("masked_lm_own")
    check_reads(TransformerEncoder(50, **sizes), problem)
    with pytest.raises(UserError, match=r"TransformerLM generates .*masked_lm_own.*--model=transformer_encoder\."):
        check_reads(TransformerLM(50, **sizes), problem)


class OfTextAlone(ByteTextEncoder):
    """As an encoder written for tensor2tensor, whose `decode` never sees an end."""

    def decode(self, ids):
        assert 1 not in ids
        return super().decode(ids)


def test_how_many_examples_have_several_sentences_is_known(tmp_path):
    """A model that was trained on single ones translates one of several, and ends."""
    encoder, path = OfTextAlone(), str(tmp_path / "records")
    targets = [*encoder.encode("Eins. zwei"), 1]
    texts = ["Ab cd. Ef gh.", "Ab.", "Ab.", "Ab."]
    rows = ({"inputs": [*encoder.encode(text), 1], "targets": targets} for text in texts)
    sharding.write_shards(rows, [path], seed=0)
    encoders, records = {"inputs": encoder, "targets": encoder}, types.SimpleNamespace(paths=[path])
    for problem, share in ((TranslateProblem(), 0.25), (TranslateProblem(was_reversed=True), 0.0), (Uneven(), None)):
        data = types.SimpleNamespace(problem=problem, records=records, encoders=encoders)
        assert several_sentences(data) == share
