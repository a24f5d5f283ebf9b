"""Commands run on TensorFlow whatever backend of Keras is chosen; what needs it refuses another in a sentence."""

import ast
import json
import os
import pathlib
import re
import subprocess

import pytest

from t2t_lite.process.backend import choose_tensorflow
from tests.processes import python

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = """
import os
from t2t_lite.bin import t2t_trainer
for _ in range(2):
    status = t2t_trainer.main(["--describe", "--hparams_set=transformer_tiny", "--vocab_size=50"])
import keras
print(status, keras.backend.backend())
"""

# JAX is not installed beside TensorFlow here; what is refused asks Keras for its name alone.
REFUSED = """
keras.backend.backend = lambda: "jax"
import t2t_lite
from t2t_lite.models import Transformer

for use in (
    lambda: t2t_lite.Translator.load("nowhere"),
    lambda: t2t_lite.Translator(None, {}, t2t_lite.HParams()),
    lambda: t2t_lite.training.Trainer("translate_own", hparams_set="transformer_tiny", output_dir="nowhere").train(1),
    lambda: Transformer.from_run("nowhere"),
):
    try:
        use()
    except t2t_lite.errors.UserError as error:
        print(error)
print(t2t_trainer.main(["--describe", "--hparams_set=transformer_tiny"]))
"""


@pytest.mark.whole
@pytest.mark.slow  # a process of its own, which imports TensorFlow
def test_a_command_uses_tensorflow_and_what_needs_it_refuses_another_backend_in_a_line():
    """The former is said once, whatever follows."""
    result = python(COMMAND + REFUSED, env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONWARNINGS": "ignore"})
    assert result.returncode == 0, result.stderr
    *_, described, one, two, three, four, status = result.stdout.splitlines()
    assert described == "0 tensorflow" and status == "2"
    assert result.stderr.count("KERAS_BACKEND=jax has no effect: t2t-trainer runs on TensorFlow.") == 1
    for line in (one, two, three, four, result.stderr.splitlines()[-1]):
        assert "with the backend jax. Expected KERAS_BACKEND=" in line
    assert not os.path.exists("nowhere")


def imports(path):
    """Yields what a file imports at its top: names of modules, and of what it takes from them."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files_of(name):
    """Yields the files that are run for an import: of the module, its packages, and where a lazy name comes from."""
    parts = name.split(".")
    inside = len(parts) > 1 and parts[0] == "t2t_lite" and parts[1] in ("bin", "extras", "hparams", "problems")
    for i in range(1, len(parts) + 1):
        path = ROOT.joinpath(*parts[inside:i])
        yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())
        if (stub := path / "__init__.pyi").is_file() and i + 1 == len(parts):
            for other in imports(stub):
                if other.rpartition(".")[2] == parts[-1]:
                    yield from files_of(other.rpartition(".")[0])


@pytest.mark.whole
def test_what_make_test_backends_runs_is_imported_without_tensorflow():
    make = subprocess.run(["make", "-n", "test-backends"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = {ROOT / path for path in re.findall(r"tests/[\w/.]+", make.stdout)}
    files = {file for path in paths for file in (path.glob("test_*.py") if path.is_dir() else [path])}
    assert len(files) > 40
    why = {file: "" for file in files}
    why |= {path: "" for file in files for folder in file.parents if (path := folder / "conftest.py").is_file()}
    to_read = list(why)
    while to_read:
        file = to_read.pop()
        chain = f"{why[file]} > {file.relative_to(ROOT)}"
        for name in imports(file):
            assert name.split(".")[0] not in ("tensorflow", "tensorflow_text"), chain
            found = {other: chain for other in files_of(name) if other not in why}
            why |= found
            to_read += found
    assert len(why) > 150


@pytest.mark.parametrize(
    "variable, file, said",
    [
        (None, None, ""),
        (None, {"backend": "tensorflow"}, ""),
        (None, {"backend": "torch"}, "backend=torch"),
        (None, {"floatx": "float32"}, ""),
        (None, [], ""),
        ("tensorflow", {"backend": "jax"}, ""),
        ("torch", {"backend": "tensorflow"}, "KERAS_BACKEND=torch"),
    ],
)
def test_the_variable_counts_before_the_file(variable, file, said, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setenv("KERAS_BACKEND", variable or "")
    if file is not None:
        (tmp_path / "keras.json").write_text(json.dumps(file))
    found = choose_tensorflow()
    assert found.endswith(said) and bool(found) == bool(said)
    assert os.environ["KERAS_BACKEND"] == "tensorflow" and choose_tensorflow() == ""
