"""A task is learned in float16 as in float32."""

import pytest

from t2t_lite import registry
from tests.training.runs import log, trainer

PROBLEM = "algorithmic_identity_decimal40"
HPARAMS = (
    "num_hidden_layers=1,hidden_size=64,filter_size=128,num_heads=4,batch_size=1024,layer_prepostprocess_dropout=0,"
    "learning_rate_schedule=constant*linear_warmup,learning_rate_constant=0.003,learning_rate_warmup_steps=50,"
    "eval_decode_examples=20,eval_beam_size=2"
)


@pytest.mark.long  # half a minute of training
def test_copying_is_learned_along_the_same_curve(tmp_path):
    problem = registry.problem(PROBLEM)
    problem.max_cases = 2000
    problem.generate_data(str(tmp_path), str(tmp_path))

    def train(policy, steps):
        settings = {"problem": PROBLEM, "evaluates": True, "local_eval_frequency": 1000, "log_step_count_steps": 25}
        run = trainer(str(tmp_path), tmp_path / policy, f"{HPARAMS},dtype_policy={policy}", **settings)
        return run.train(steps), [line["loss"] for line in log(tmp_path / policy, "progress")]

    metrics, losses = train("mixed_float16", 450)
    _, expected = train("float32", 150)
    assert losses[: len(expected)] == pytest.approx(expected, rel=5e-3)
    assert metrics["exact_sequence_accuracy"] >= 0.9 and metrics["token_accuracy"] >= 0.98
