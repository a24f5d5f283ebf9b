"""A run is opened as it was trained, with its vocabulary and LoRA, or its fault is named in one line."""

# Nearest tests of: t2t_lite/runs/locating.py, t2t_lite/runs/weights.py

import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.runs import opening
from t2t_lite.runs.checkpoints import average_checkpoints
from t2t_lite.runs.opening import open_run, open_runs
from t2t_lite.runs.run_config import build_model, lora_names
from t2t_lite.runs.warm_start import warm_start
from t2t_lite.runs.weights import named_weights, trackable_weights
from tests.decoding.runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), steps=(100, 1000))


@pytest.fixture
def run_dir(made, tmp_path):
    """A copy that a test may damage."""
    return shutil.copytree(made, tmp_path / "run")


def mistake(path, data_dir=None):
    with pytest.raises(UserError) as caught:
        open_run(str(path), data_dir)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
def test_weights_problem_and_vocabulary_come_back(run_dir):
    run = open_run(str(run_dir))
    assert (run.step, run.path) == (1000, str(run_dir / "model.ckpt-1000"))
    assert run.problem.languages == ("en", "de")
    assert run.encoders["inputs"].decode(run.encoders["inputs"].encode("the red house")) == "the red house"
    assert run.hparams.hidden_size == 16
    vocabulary = [*run_dir.glob("vocab*"), run_dir / "problem.json"]
    assert sorted(run.encoder_files.values()) == sorted(map(str, vocabulary))
    same, other = open_run(str(run_dir / "model.ckpt-1000")), open_run(str(run_dir / "model.ckpt-100.index"))
    name = "embedding"
    weights = [next(w for w in r.model.weights if name in w.path).numpy() for r in (run, same, other)]
    assert (weights[0] == weights[1]).all() and (weights[0] != weights[2]).any()


def change(run, key, **values):
    """Changes a dict in the `hparams.json` of a run; returns the whole."""
    path = run / "hparams.json"
    config = json.loads(path.read_text())
    config[key] |= values
    path.write_text(json.dumps(config))
    return config


def cut(run, ending, size):
    path = run / f"model.ckpt-1000.{ending}"
    path.write_bytes(path.read_bytes()[:size])


DATA = "data-00000-of-00001"
DAMAGE = {  # {what: (function of a run's folder, what is said)}
    "no byte of data": (lambda run: cut(run, DATA, 0), r"model\.ckpt-1000: damaged.*--checkpoint_path"),
    "half of the data": (lambda run: cut(run, DATA, 2000), r"model\.ckpt-1000: damaged.*--checkpoint_path"),
    "no data": (lambda run: (run / f"model.ckpt-1000.{DATA}").unlink(), r"model\.ckpt-1000: damaged"),
    "half of the index": (lambda run: cut(run, "index", 50), r"model\.ckpt-1000: damaged"),
    "another model": (lambda run: change(run, "hparams", filter_size=48), r"model\.ckpt-1000: .*32.* there, .*48"),
    "another vocabulary": (
        lambda run: change(run, "vocabulary_sha256", inputs="0" * 64), r"expected 0{12}….* vocab\S+\.model"
    ),
    "no vocabulary": (lambda run: next(run.glob("vocab*.model")).unlink(), r"vocab\S+\.model"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", DAMAGE)
def test_what_is_damaged_or_does_not_belong_to_a_run_is_named(run_dir, what):
    damage, words = DAMAGE[what]
    damage(run_dir)
    assert re.search(words, mistake(run_dir))
    if "data" in what:
        assert open_run(str(run_dir / "model.ckpt-100")).step == 100


def test_the_vocabulary_may_be_in_the_data_folder(run_dir, made):
    for path in (*run_dir.glob("vocab.*"), run_dir / "problem.json"):
        path.unlink()
    assert open_run(str(run_dir), str(made.parent / "data")).step == 1000


@pytest.mark.slow
def test_weights_that_are_not_finite_are_refused_wherever_a_model_is_opened(run_dir, tmp_path):
    run = open_run(str(run_dir))
    model = run.model
    name, weight = list(named_weights(model).items())[3]
    spoilt = weight.numpy()
    spoilt.flat[-1] = np.inf
    weight.assign(spoilt)
    path = str(run_dir / "model.ckpt-2000")
    tf.train.Checkpoint(model=trackable_weights(model)).write(path)
    message = mistake(run_dir)
    assert f"{path}: {name}: 1 of {spoilt.size:,} numbers are NaN or infinite" in message
    for use in (
        lambda: average_checkpoints([str(run_dir / "model.ckpt-100"), path], str(tmp_path / "avg" / "model.ckpt-1")),
        lambda: warm_start(path, build_model(run.config), run.encoders),
    ):
        with pytest.raises(UserError, match=f"model.ckpt-2000: {name}: .*NaN or infinite"):
            use()
    assert not (tmp_path / "avg").exists()
    assert open_run(str(run_dir / "model.ckpt-1000")).step == 1000


@pytest.mark.slow
def test_lora_is_added_to_its_kernels_by_its_own_factor(run_dir):
    model = build_model(change(run_dir, "hparams", lora_rank=2, lora_alpha=3.0))
    draw = np.random.default_rng(1)
    trained = named_weights(model)
    for name in lora_names(trained):
        trained[name].assign(draw.normal(size=trained[name].shape))
    tf.train.Checkpoint(model=trackable_weights(model)).write(str(run_dir / "model.ckpt-2000"))
    run = open_run(str(run_dir))
    assert (run.step, run.hparams.lora_rank) == (2000, 2)
    merged = named_weights(run.model)
    assert merged.keys() == trained.keys() - lora_names(trained) and lora_names(trained)
    for name, weight in merged.items():
        pair = [trained.get(f"{name.removesuffix('kernel')}lora_kernel_{matrix}") for matrix in "ab"]
        has_lora = name.endswith("/kernel") and pair[0] is not None
        added = 1.5 * np.matmul(*(matrix.numpy() for matrix in pair)) if has_lora else 0.0
        np.testing.assert_allclose(weight.numpy(), trained[name].numpy() + added, atol=1e-5, err_msg=name)
    change(run_dir, "hparams", lora_rank=0)
    assert re.search(r"model\.ckpt-2000: contains \S+lora_kernel_a, .* lora_rank=0", mistake(run_dir))


@pytest.mark.slow
def test_another_policy_is_that_of_the_model_alone(run_dir, monkeypatch):
    (run,) = open_runs(str(run_dir), dtype_policy="bfloat16")
    assert (run.model.compute_dtype, run.hparams.dtype_policy) == ("bfloat16", "float32")
    monkeypatch.setattr(opening, "build_model", lambda config, policy: build_model(config))
    with pytest.raises(UserError, match=r"^model=transformer: the model computes in float32, although .*=bfloat16"):
        open_runs(str(run_dir), dtype_policy="bfloat16")
