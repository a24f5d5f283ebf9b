"""Trains our model on JAX on a GPU; a process that answers requests of `benchmarks/gpu.py`.

KERAS_BACKEND=jax python -m benchmarks.card.jax_step

Translation models are trained with one function that jax.jit compiles. It computes gradients, applies Keras' Adam, and
donates its state. TensorFlow is neither imported nor needed.
"""

import gc
import os
import random
import time

# Both must be set before JAX is imported. JAX must not reserve all memory, because other processes also use the GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("KERAS_BACKEND", "jax")

from benchmarks.card.cases import DROPOUT, SIZES, SMOOTHING, from_json, random_ids
from benchmarks.card.peer_models import BATCHES
from benchmarks.card.talk import answer

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


def new_model(case):
    """Creates the model of a case, with all its weights."""
    from t2t_lite import registry

    settings = {**SIZES[case.model], "layer_prepostprocess_dropout": DROPOUT, "dtype_policy": _POLICIES[case.dtype]}
    hparams = registry.hparams("transformer_base_v1").override_from_dict(settings)
    model = registry.model("transformer").from_hparams(hparams, case.vocab_size)
    model.build()
    return model


def new_step(model, optimizer):
    """Returns a compiled function (state, inputs, targets) -> (state, loss).

    The state is a tuple of the weights, the dropout seeds and the optimizer's variables. The state is donated, so it is
    invalid after the call.
    """
    import jax

    from t2t_lite.training.losses import SmoothedCrossEntropy

    smoothed = SmoothedCrossEntropy(SMOOTHING)

    def loss_of(weights, others, inputs, targets):
        logits, others = model.stateless_call(weights, others, {"inputs": inputs, "targets": targets}, training=True)
        return smoothed(targets, logits), others

    def step(state, inputs, targets):
        weights, others, moments = state
        (loss, others), slopes = jax.value_and_grad(loss_of, has_aux=True)(weights, others, inputs, targets)
        weights, moments = optimizer.stateless_apply(moments, slopes, weights)
        return (weights, others, moments), loss

    return jax.jit(step, donate_argnums=0)


class Work:
    """Trains a model; `run` takes steps on the batches in turn.

    Args:
        case: cases.Training of a translation model.
    """

    def __init__(self, case):
        import jax
        import keras

        self.case, self.steps = case, 0
        random.seed(1)  # Keras draws its seeds from `random`; its set_random_seed would import TensorFlow
        model = new_model(case)
        optimizer = keras.optimizers.Adam(1e-4, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
        optimizer.build(model.trainable_variables)
        variables = model.trainable_variables, model.non_trainable_variables, optimizer.variables
        self.state = tuple([variable.value for variable in part] for part in variables)
        self.step = new_step(model, optimizer)
        ids = random_ids(case, BATCHES, case.rows * 2).astype("int32")
        self.batches = [(jax.device_put(both[: case.rows]), jax.device_put(both[case.rows :])) for both in ids]

    def run(self, steps):
        """Takes steps and waits for their completion; returns the last loss, a float."""
        for _ in range(steps):
            self.state, loss = self.step(self.state, *self.batches[self.steps % BATCHES])
            self.steps += 1
        self.wait()
        return float(loss)

    def wait(self):
        """Waits for all pending work."""
        import jax

        jax.block_until_ready(self.state)


class Side:
    """Handles the requests to this process, with one case at a time."""

    work, earlier = None, 0

    def hello(self):
        """Returns the versions and the GPU's name."""
        import jax
        import keras

        device = jax.devices()[0]
        card = device.device_kind if device.platform == "gpu" else None
        return {"side": "jax", "jax": jax.__version__, "card": card, "keras": keras.__version__}

    def warm(self, case):
        """Creates the model of a case, given as JSON, and trains until it is warm."""
        import keras

        self.drop()
        case = from_json(case)
        if case.work != "train" or case.language_model or case.dtype not in _POLICIES:
            raise ValueError(f"{case.title}: only translation models are trained here, in {' or '.join(_POLICIES)}")
        if keras.backend.backend() != "jax":
            raise ValueError(f"Keras runs on {keras.backend.backend()}: set KERAS_BACKEND=jax")
        self.earlier = _peak()
        started = time.perf_counter()
        work = Work(case)
        loss = work.run(BATCHES + 1)
        self.work, seconds = work, time.perf_counter() - started
        return {"ready_seconds": round(seconds, 2), "loss": loss, "peer": "t2t_lite on JAX, jax.jit"}

    def turn(self):
        """Takes the steps of one turn; returns figures.

        "peak_gb" is 0 if an earlier case in this process needed more memory, because JAX reports only the peak of the
        whole process.
        """
        if self.work is None:
            raise RuntimeError("no case is warm")
        case = self.work.case
        self.work.wait()
        started = time.perf_counter()
        self.work.run(case.steps)
        seconds = time.perf_counter() - started
        peak = _peak()
        peak_gb = peak / 1e9 if peak > self.earlier else 0.0
        return {"seconds": seconds, "tokens": case.tokens * case.steps, "peak_gb": peak_gb}

    def drop(self):
        """Frees the memory of the current case."""
        import jax
        import keras

        self.work = None
        keras.backend.clear_session()
        jax.clear_caches()
        gc.collect()
        return {}


def _peak():
    """Returns this process's peak GPU memory in bytes; 0 if JAX does not report it."""
    import jax

    return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)


def main():
    """Answers requests until standard input ends."""
    side = Side()
    answer({"hello": side.hello, "warm": side.warm, "turn": side.turn, "drop": side.drop})


if __name__ == "__main__":
    main()
