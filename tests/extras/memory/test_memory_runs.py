"""Runs of Transformer-XL: resumed bit for bit, evaluated with a longer memory, and used by other commands."""

import numpy as np
import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.models import TransformerMemory
from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
from tests.extras.memory.test_carried_state import PROBLEM, data, memory, remembering  # noqa: F401
from tests.training.runs import assert_same, killed_after, log, state

pytestmark = pytest.mark.slow  # of whole runs

SETTINGS = (
    "num_hidden_layers=1,hidden_size=8,filter_size=16,num_heads=2,batch_size=12,segment_length=4,memory_length=6,"
    "layer_prepostprocess_dropout=0.2,learning_rate_schedule=constant,learning_rate_constant=0.01"
)


def xl(data, output_dir, **settings):  # noqa: F811
    found = remembering(data, output_dir, model="transformer_memory", **settings)
    found.hparams = registry.hparams("transformer_memory_tiny").of_model(TransformerMemory).parse(SETTINGS)
    found.hparams_set = "transformer_memory_tiny"
    return found


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("xl") / "run"
    xl(data, folder, evaluates=True).train(6)
    return folder


@pytest.mark.long  # test_carried_state.py has it for a smaller model
def test_a_run_in_parts_is_bit_for_bit_the_run_in_one(data, run, tmp_path):  # noqa: F811
    killed_after(run, 4, tmp_path / "parts")
    xl(data, tmp_path / "parts").train(6)
    assert_same(state(tmp_path / "parts", 6), state(run, 6))
    assert_same(memory(tmp_path / "parts", 6), memory(run, 6))
    assert sorted(value.shape for value in memory(run, 6).values()) == [(3, 6), (3, 6, 8)]


def test_it_may_be_evaluated_with_a_longer_memory(data, run):  # noqa: F811
    [*_, logged] = log(run, "evaluation")
    same = CheckpointEvaluation(str(run), data).newest()
    assert same["loss"] == pytest.approx(logged["loss"], rel=1e-5)
    longer = CheckpointEvaluation(
        str(run), data, change_hparams=lambda hparams: hparams.parse("eval_memory_length=20")
    ).newest()
    assert longer["loss"] != pytest.approx(same["loss"], rel=1e-6)
    assert log(run, name="eval.log")[-1]["settings"]["eval_memory_length"] == 20


def test_a_trained_model_scores_and_continues_texts(run):
    generator = t2t_lite.load(str(run))
    (score,) = generator.score(["ab ab"])
    ids = np.array([generator.encoders["targets"].encode("ab ab")])
    logits = np.asarray(generator.model({"targets": ids}))[0].astype("float64")
    nats = np.log(np.exp(logits).sum(-1)) - logits[np.arange(5), ids[0]]
    np.testing.assert_allclose(score.token_log_probs, -nats, atol=1e-5)
    assert len(generator.generate(["ab "], max_new_tokens=4)) == 1
    assert registry.problem(PROBLEM).sequence_length == 12
