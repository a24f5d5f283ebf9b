"""What evaluations of language models measure, on a text whose distribution is known, and by sliding windows."""

# Nearest tests of: t2t_lite/training/evaluator.py, t2t_lite/training/checkpoint_evaluation.py

import math
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.problem import ChoppedTextProblem, DatasetSplit, Problem, VocabType
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.evaluation import loss_units
from t2t_lite.models import TransformerLM
from t2t_lite.settings.config import HParams
from t2t_lite.training import checkpoint_evaluation
from t2t_lite.training.evaluator import Evaluator
from t2t_lite.training.monitor import check_metrics
from t2t_lite.training.settings import EvaluationSettings

LENGTH, SYMBOLS, VOCAB = 12, " aé", 258
NEXT = np.array([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.7, 0.2, 0.1]])  # probabilities of a symbol after another
HPARAMS = HParams(batch_size=25 * LENGTH)
END = 0.01  # of the text, after any byte


def chain(count):
    """A text drawn from NEXT."""
    draw, states = np.random.default_rng(0), [0]
    while len(states) < count:
        states.append(draw.choice(3, p=NEXT[states[-1]]))
    return "".join(SYMBOLS[state] for state in states)


TEXT = chain(700)


class Chain(ChoppedTextProblem):
    name = "chain"
    vocab_type = VocabType.CHARACTER
    sequence_length = LENGTH
    dataset_splits = [{"split": split, "shards": 1} for split in ("train", "eval")]  # noqa: RUF012

    def generate_documents(self, data_dir, tmp_dir, dataset_split):
        yield [TEXT]


@pytest.fixture(scope="module")
def problem_and_folder(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("chain"))
    problem = Chain()
    problem.generate_data(folder, folder)
    return problem, folder


def evaluated(model, problem_and_folder, **more):
    problem, folder = problem_and_folder
    encoders, records = problem.get_feature_encoders(folder), Records(problem, folder, DatasetSplit.EVAL)
    return Evaluator(model, encoders, HPARAMS, records, EvaluationSettings(**more))().metrics


# The bytes of " aé" as ids, and the probability of each after each: é is two bytes, of which the second is certain.
SPACE, A, FIRST, SECOND = (2 + byte for byte in " aé".encode())


def log_probabilities():
    after = np.full([VOCAB, VOCAB], 1e-9)
    for i, state in ((SPACE, 0), (A, 1), (SECOND, 2)):
        after[i, [SPACE, A, FIRST]] = NEXT[state] * (1 - END)
        after[i, 1] = END
    after[FIRST, SECOND] = 1.0
    after[0, [SPACE, A, FIRST, SECOND]] = 0.25  # where nothing is known
    return np.log(after / after.sum(1, keepdims=True)).astype("float32")


class Known:
    """Knows the distribution of the text, given the id before."""

    def __call__(self, features, training):
        before = tf.pad(features["targets"], [[0, 0], [1, 0]])[:, :-1]
        return tf.gather(tf.constant(log_probabilities()), before)


def nats_of_text(row_length=None):
    """The sum over all ids; what comes before a row is not known."""
    ids = np.array([0, *(2 + byte for byte in TEXT.encode()), 1])
    before = ids[:-1].copy()
    if row_length:
        before[::row_length] = 0
    return -log_probabilities()[before, ids[1:]].sum()


@pytest.mark.slow
@pytest.mark.parametrize("stride", [0, 1, 5, LENGTH])
def test_the_loss_is_that_of_the_distribution_by_token_word_character_and_byte(problem_and_folder, stride):
    metrics = evaluated(Known(), problem_and_folder, eval_stride=stride)
    nats = nats_of_text(row_length=LENGTH if stride in (0, LENGTH) else None)
    counts = {"word": len(TEXT.split()) + 1, "character": len(TEXT) + 1, "byte": len(TEXT.encode()) + 1}
    expected = {"loss": nats / counts["byte"], "perplexity": math.exp(nats / counts["byte"])}
    for unit, count in counts.items():
        expected |= {f"nats_per_{unit}": nats / count, f"perplexity_per_{unit}": math.exp(nats / count)}
        expected[f"bits_per_{unit}"] = nats / count / math.log(2)
    assert {*loss_units.TEXT_MEASURES, "token_accuracy"} <= {*metrics}
    for name in {*metrics} - {"token_accuracy"}:
        assert metrics[name] == pytest.approx(expected[name], rel=1e-5), name


@pytest.mark.slow
def test_a_checkpoint_is_evaluated_again_with_another_stride(problem_and_folder, tmp_path, monkeypatch):
    problem, folder = problem_and_folder
    (tmp_path / "model.ckpt-3.index").touch()
    run = types.SimpleNamespace(model=Known(), encoders=problem.get_feature_encoders(folder))
    monkeypatch.setattr(registry, "problem", lambda name: problem)
    for name, value in (
        ("read_config_of", {"problem": problem.name, "model": "transformer_lm"}), ("hparams_of", HPARAMS),
        ("open_run", run), ("restore_weights", None),
    ):  # fmt: skip
        monkeypatch.setattr(checkpoint_evaluation, name, lambda *_, value=value: value)
    losses = []
    for stride in (0, 5, 0):
        evaluation = checkpoint_evaluation.CheckpointEvaluation(
            str(tmp_path), folder, settings=EvaluationSettings(eval_stride=stride)
        )
        ((_, metrics),) = evaluation.follow()
        losses.append(metrics["loss"])
    rows, text = (nats_of_text(length) / (len(TEXT.encode()) + 1) for length in (LENGTH, None))
    assert losses == pytest.approx([rows, text, rows], rel=1e-5)
    assert len((tmp_path / "eval.log").read_text().splitlines()) == 2, "the third time it is in the log"


@pytest.mark.slow
def test_windows_leave_costs_out_which_may_need_what_comes_behind(problem_and_folder):
    def model(batch, training):
        return {"targets": Known()(batch, training), "costs": {"targets": tf.ones_like(batch["targets"], tf.float32)}}

    assert evaluated(model, problem_and_folder)["cost_targets"] == 1.0
    found = evaluated(model, problem_and_folder, eval_stride=5)
    assert "cost_targets" not in found
    assert found["loss"] == evaluated(Known(), problem_and_folder, eval_stride=5)["loss"]


@pytest.mark.few("5")
@pytest.mark.slow
@pytest.mark.parametrize("stride", [5, 12])
def test_windows_score_each_id_once_with_what_comes_before_it(problem_and_folder, stride):
    keras.utils.set_random_seed(1)
    model = TransformerLM(VOCAB, hidden_size=8, filter_size=16, num_heads=2, num_layers=1, dropout=0.0)
    model.build()
    for weight in model.trainable_weights:
        weight.assign(4 * weight)
    ids = np.array([*(2 + byte for byte in TEXT.encode()), 1], "int32")
    starts = range(0, len(ids) - LENGTH + stride, stride)  # one window after the other, until the text ends
    rows = [ids[start : start + LENGTH] for start in starts]
    logits = model({"targets": np.stack([np.pad(row, (0, LENGTH - len(row))) for row in rows])}, training=False)
    total, end = 0.0, 0
    for start, row, each in zip(starts, rows, np.asarray(keras.ops.log_softmax(logits)), strict=True):
        scored = np.take_along_axis(each[: len(row)], row[:, None], 1)[end - start :]
        total, end = total - scored.sum(), start + len(row)
    assert end == len(ids)
    assert evaluated(model, problem_and_folder, eval_stride=stride)["loss"] == pytest.approx(total / len(ids), rel=1e-5)


def predicts_targets(batch, training):
    return tf.one_hot(batch["targets"], 5)


def test_the_best_checkpoint_may_be_the_one_with_the_fewest_bits():
    settings = EvaluationSettings(best_checkpoint_metric="bits_per_byte")
    check_metrics(predicts_targets, Chain(), HPARAMS, settings)
    with pytest.raises(UserError, match="best_checkpoint_metric=bits_per_byte"):
        check_metrics(predicts_targets, Problem(), HPARAMS, settings)
