"""A run in parts is bit for bit the run in one, whatever its checkpoints hold."""

# Nearest tests of: t2t_lite/training/run_context.py, t2t_lite/training/loop.py, t2t_lite/runs/checkpoints.py

import keras
import pytest
import tensorflow as tf
from keras import ops

from t2t_lite import registry
from tests.training.runs import SIZES, Small, assert_same, killed_after, log, small_trainer, state

pytestmark = pytest.mark.slow  # of whole runs


@registry.register_model("runs_drawing")
class RegisteredDrawing(Small):
    """Keras' layer with a generator, two layers with the same one of their own, and one that has it in a list."""

    def __init__(self, vocab_size):
        super().__init__(vocab_size)
        self.noise = keras.layers.GaussianNoise(0.5)
        self.generators = [keras.random.SeedGenerator(7)]
        self.other = keras.layers.Layer()
        self.other.same = self.generators[0]

    def call(self, features, training=False):
        x = self.dropout(self.embedding(features["targets"]), training=training)
        x = x + keras.random.normal(ops.shape(x), seed=self.generators[0])  # where it does not train as well
        return self.logits(self.noise(x, training=training))


FLOAT16 = "dtype_policy=mixed_float16,mixed_precision_optimizer_init_loss_scale=1024,loss_scale_growth_steps=2"
STATES = {  # {what is saved: (model, hyperparameters, settings)}
    "moments": ("runs_small", "", {}),
    "averages": ("runs_small", "ema_decay=0.9,optimizer=sgd", {}),
    "rows and columns": ("runs_small", "optimizer=adafactor", {}),
    "loss scale": ("runs_small", FLOAT16, {}),
    "random generators": ("runs_drawing", "", {}),
    "copies on replicas": ("runs_small", "gradient_accumulation_steps=2", {"logical_cpus": 2}),
    "layers that are unfrozen in turn": ("transformer", "unfreeze_steps=2,learning_rate_layer_decay=0.4", {}),
    "LoRA": ("transformer", "lora_rank=2,lora_alpha=4", {}),
}


@pytest.mark.few("moments", "loss scale", "random generators", "copies on replicas")
@pytest.mark.parametrize("what", STATES)
def test_a_run_in_parts_is_the_run_in_one(data_dir, tmp_path, caplog, what):
    """Also past an evaluation, which draws, and whose numbers no later step may depend on."""
    model, more, settings = STATES[what]
    hparams = f"{SIZES},eval_decode_examples=0{more and ','}{more}"
    small_trainer(data_dir, tmp_path / "whole", hparams, model=model, evaluates=True, eval_steps=1, **settings).train(6)
    assert "reproducible, the same command" in caplog.text
    killed_after(tmp_path / "whole", 3, tmp_path / "parts")
    small_trainer(data_dir, tmp_path / "parts", hparams, model=model, **settings).train(6)
    assert_same(state(tmp_path / "parts", 6), state(tmp_path / "whole", 6))
    (resumed,) = log(tmp_path / "parts", "resume")
    assert (resumed["step"], resumed["data_batch"]) == (3, 12 if settings else 3)
    names = tf.train.load_checkpoint(str(tmp_path / "whole/model.ckpt-6")).get_variable_to_shape_map()
    assert sum(name.startswith("generators/") for name in names) == (2 if model == "runs_drawing" else 0)
    scales = [line.get("loss_scale") for line in log(tmp_path / "parts", "progress")]
    assert scales[-2:] == ([2048, 4096] if what == "loss scale" else [None] * 2), "of steps 4 and 6"
