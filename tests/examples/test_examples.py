"""Each example as its docstring says to run it: what it prints, and that it has learned what it claims."""

import importlib
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_lite import registry
from t2t_lite.problems import algorithmic
from t2t_lite.runs.opening import open_run
from tests.layers.harness import check_layer

pytestmark = pytest.mark.slow  # they train

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def output_of(name):
    """Runs a script; returns what it printed."""
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(pattern, text):
    return float(re.search(pattern, text)[1])


@pytest.mark.long
def test_text_classifier_knows_who_does_it():
    accuracy = number(r"held-out accuracy ([\d.]+)", output_of("text_classifier.py"))
    assert accuracy > 0.95  # chance, and any bag of words: 0.5


@pytest.mark.long
def test_language_model_closes_brackets():
    text = output_of("language_model.py")
    perplexity, best = number(r"perplexity ([\d.]+)", text), number(r"best possible is ([\d.]+)", text)
    assert 0.99 * best < perplexity < 1.05 * best
    assert number(r"at most (\S+) \(logits\)", text) < 1e-5
    # Of the 3 closing brackets one is right: guessing them, nearly no string of 16 symbols would be valid.
    assert number(r"(\d+)% of 200 are valid", text) > 80


def run(command, *words):
    """Calls a command's `main` in this process."""
    assert importlib.import_module(f"t2t_lite.bin.{command}").main([str(word) for word in words]) == 0


@pytest.fixture(scope="module")
def talking_heads(tmp_path_factory):
    """An output_dir of a few steps on digits to be reversed: the problem of the docstring, made small."""
    folder = tmp_path_factory.mktemp("talking_heads")
    problem = ("--problem=algorithmic_reverse_decimal40", f"--data_dir={folder}/data")
    sizes = {"train_size": 1000, "dev_size": 20, "train_length": 8, "dev_length": 8}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sizes.items():
            patch.setattr(algorithmic.AlgorithmicProblem, name, value)
        run("t2t_datagen", *problem, f"--tmp_dir={folder}")
        run(
            "t2t_trainer", *problem, f"--t2t_usr_dir={EXAMPLES}/talking_heads", "--model=talking_heads_transformer",
            "--hparams_set=transformer_tiny", f"--output_dir={folder}/train", "--train_steps=20",
            "--hparams=num_hidden_layers=1,hidden_size=32,filter_size=64,batch_size=256,learning_rate_warmup_steps=10",
        )  # fmt: skip
    return folder / "train"


@pytest.mark.long
def test_talking_heads_mixing_is_trained_and_saved(talking_heads):
    reader = tf.train.load_checkpoint(str(talking_heads))
    names = [n for n in reader.get_variable_to_shape_map() if re.fullmatch(r"model/.*/mix_(scores|weights)/.*VALUE", n)]
    assert len(names) == 2 * 3  # before and after the softmax: in the encoder, the decoder, and towards the memory
    for name in names:
        mixing = reader.get_tensor(name)
        assert mixing.shape == (4, 4)
        assert np.abs(mixing - np.eye(4)).max() > 1e-4, name  # it starts as the identity


@pytest.mark.long
def test_talking_heads_decode(talking_heads, tmp_path):
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.write_text("1 2 3\n\n4 5\n")
    run("t2t_decoder", f"--output_dir={talking_heads}", f"--decode_from_file={source}", f"--decode_to_file={target}")
    assert target.read_text().count("\n") == 3


@pytest.mark.long
def test_talking_heads_cached_steps_equal_the_full_pass(talking_heads):
    model, rng = open_run(talking_heads).model, np.random.default_rng(1)
    inputs, targets = rng.integers(2, 12, (2, 3, 7)).astype("int32")
    inputs[1, 4:] = 0
    full = ops.convert_to_numpy(model({"inputs": inputs, "targets": targets}))
    cache, ids = model.init_cache(model.encode(inputs), max_length=7), np.zeros(3, "int32")
    for i in range(7):
        logits, cache = model.decode_step(ops.convert_to_tensor(ids), ops.convert_to_tensor(i, "int32"), cache)
        np.testing.assert_allclose(ops.convert_to_numpy(logits), full[:, i], atol=1e-5)
        ids = targets[:, i]


def test_talking_heads_keep_the_contract_of_a_layer(tmp_path):
    registry.import_usr_dir(str(EXAMPLES / "talking_heads"))
    layer_class = sys.modules["talking_heads"].TalkingHeadsAttention
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    check_layer(layer_class, {"num_heads": 2}, x, 4 + 2, tmp_path)


def test_talking_heads_take_at_most_twenty_lines():
    """Statements of the two classes; docstrings and blank lines aside."""
    text = (EXAMPLES / "talking_heads/__init__.py").read_text()
    body = re.sub(r'"""[^"]*"""', "", text[text.index("\n@") :])
    assert len([line for line in body.splitlines() if line.strip()]) <= 20
