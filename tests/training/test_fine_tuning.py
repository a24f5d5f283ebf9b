"""Fine-tuning as in ULMFiT: slanted triangles, a rate for each layer, one more layer trained every so many steps."""

import logging
import os
import signal

import numpy as np
import pytest

from tests.training.runs import assert_same, state, trainer

SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,eval_decode_examples=0"
ULMFIT = (
    "learning_rate_schedule=constant*slanted_triangular,learning_rate_constant=0.01,learning_rate_warmup_steps=1,"
    "learning_rate_layer_decay=0.3846,unfreeze_steps=4,shared_embedding_and_softmax_weights=False"
)


class StopsAfter(logging.Handler):
    """Sends this process SIGTERM when the log tells of a step."""

    def __init__(self, step):
        super().__init__()
        self.line = f"step {step}/"

    def emit(self, record):
        """Looks at a line of the log."""
        if record.getMessage().startswith(self.line):
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.long  # four runs
def test_layers_are_unfrozen_in_turn_and_a_stopped_run_resumes_exactly(data_dir, tmp_path, caplog):
    def fine_tuned(name):
        return trainer(data_dir, tmp_path / name, f"{SIZES},{ULMFIT}", warm_start_from=str(tmp_path / "source"))

    trainer(data_dir, tmp_path / "source", f"{SIZES},shared_embedding_and_softmax_weights=False").train(3)
    caplog.set_level(logging.INFO)
    fine_tuned("whole").train(9)
    assert "from step 9" in caplog.text
    before = state(tmp_path / "source", 3)
    above, layers = (
        ("model/softmax_embedding/", "model/encoder_norm/", "model/decoder_norm/"),
        ("model/encoder/", "model/decoder/"),
    )
    for step, trained in ((3, above), (6, above + layers), (9, ("model/",))):
        now = state(tmp_path / "whole", step)
        names = {name for name in before if name.startswith("model/")}
        assert {n for n in names if not np.array_equal(before[n], now[n])} == {
            n for n in names if n.startswith(trained)
        }

    logger, stops = logging.getLogger("t2t_lite"), StopsAfter(4)
    logger.addHandler(stops)
    parts = fine_tuned("parts")
    parts.train(9)
    logger.removeHandler(stops)
    assert parts.ended_by == "signal" and state(tmp_path / "parts", 5)
    fine_tuned("parts").train(9)
    assert_same(state(tmp_path / "parts", 9), state(tmp_path / "whole", 9))
