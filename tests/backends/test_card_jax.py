"""The side of `benchmarks/gpu.py` that trains our model on JAX, on the CPU and without TensorFlow."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from benchmarks.card import cases, jax_step
from benchmarks.harness.turns import ROOT
from t2t_lite.models import Transformer
from tests.backends.blocked import BLOCK_TENSORFLOW

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="for JAX")
TOY, HALF = (cases.Training("toy", 4, 8, dtype, 2, 100) for dtype in ("float32", "bfloat16"))


def test_toy_cases_warm_and_take_turns_without_tensorflow():
    """One line each, and nothing else on standard output."""
    warm = [
        {"do": "warm", "case": cases.to_json(case)} for case in (TOY, HALF, cases.waves("generate", is_toy=True)[0][0])
    ]
    requests = [
        {"do": "hello"},
        warm[0],
        {"do": "turn"},
        warm[1],
        {"do": "turn"},
        warm[2],
        {"do": "turn"},
        {"do": "drop"},
    ]
    done = subprocess.run(
        [sys.executable, "-c", f"{BLOCK_TENSORFLOW}\nfrom benchmarks.card import jax_step\njax_step.main()"], cwd=ROOT,
        env=os.environ, input="".join(json.dumps(request) + "\n" for request in requests), capture_output=True,
        text=True, timeout=300, check=True,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(requests), done.stdout
    hello, *found, refused, idle, dropped = found
    assert hello["side"] == "jax" and hello["keras"] == keras.__version__ and hello["card"] is None
    for warm, turn in zip(found[::2], found[1::2], strict=True):
        assert 0 < warm["loss"] < 6 and warm["ready_seconds"] > 0, warm
        assert turn["tokens"] == 64 and turn["seconds"] > 0 and turn["peak_gb"] == 0, turn
    assert "only translation models" in refused["error"] and "no case is warm" in idle["error"] and dropped == {}


def test_it_is_the_base_model():
    model = jax_step.new_model(cases.Training("base", 4, 8))
    papers = Transformer(37_000)
    papers.build()
    assert model.count_params() == papers.count_params()
    assert model.dtype_policy.name == "mixed_bfloat16" and model.config["dropout"] == 0.1


def test_a_step_learns_and_is_compiled_once():
    work = jax_step.Work(HALF)
    seeds = [np.array(value) for value in work.state[1]]
    before = work.run(1)
    assert seeds and all((np.array(value) != seed).any() for value, seed in zip(work.state[1], seeds, strict=True))
    assert work.run(100) < before
    assert work.step._cache_size() <= 1, "0 if JAX has compiled so much in this process that it forgot this function"
    assert {str(weight.dtype) for weight in work.state[0]} == {"float32"}
