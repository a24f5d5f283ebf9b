"""`.keras` files in a process that has imported the package and nothing of it."""

import importlib
import os
import pkgutil

import keras
import numpy as np
import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.models import Transformer
from t2t_lite.process import keras_files
from t2t_lite.training import MaskedAccuracy, SmoothedCrossEntropy
from t2t_lite.training.optimization.optimizers import Adafactor, make_optimizer
from tests.processes import python

SMALL = {
    "vocab_size": 20, "hidden_size": 8, "filter_size": 8, "num_heads": 2, "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}  # fmt: skip
IDS = np.array([[3, 4, 5, 0], [6, 7, 8, 9]], "int32")
BATCH = {"inputs": IDS, "targets": IDS}

LOAD = """
import sys
{imports}
ids = [[3, 4, 5, 0], [6, 7, 8, 9]]
for path in sys.argv[1:]:
    model = keras.saving.load_model(path)
    ids = keras.ops.convert_to_tensor(ids)
    batch = {{"inputs": ids, "targets": ids}}
    model.run_eagerly = True  # a graph takes longer
    loss = model.train_on_batch(batch, ids)
    print(type(model).__name__, type(model.optimizer).__name__, type(model.loss).__name__, *loss)
"""


OPTIMIZERS = {
    "Adam": lambda: make_optimizer(registry.hparams("transformer_tiny"), 100),  # with a schedule
    "Adafactor": lambda: Adafactor(0.01),
}


def saved(path, optimizer):
    """Saves a compiled and fitted model; returns what training goes on with: its loss and its accuracy."""
    model = Transformer(**SMALL, dropout=0.0)
    model.compile(OPTIMIZERS[optimizer](), SmoothedCrossEntropy(0.2), metrics=[MaskedAccuracy()], run_eagerly=True)
    model.fit(BATCH, IDS, verbose=0)
    model.save(path)
    return [float(x) for x in model.train_on_batch(BATCH, IDS)]


@pytest.fixture
def files(tmp_path, optimizers):
    """{path of a file: what its training goes on with} of models with these optimizers."""
    paths = [str(tmp_path / f"{name}.keras") for name in optimizers]
    return dict(zip(paths, map(saved, paths, optimizers), strict=True))


@pytest.mark.few("layers")
@pytest.mark.slow
@pytest.mark.parametrize(
    "imports, optimizers",
    [
        ("import t2t_lite, keras", ["Adam"]),
        ("import keras, t2t_lite", ["Adam", "Adafactor"]),
        ("import t2t_lite.layers; import keras", ["Adam"]),
    ],
    ids=["before_keras", "after_keras", "layers"],
)
def test_compiled_models_load_and_train_on(files, imports, optimizers):
    result = python(LOAD.format(imports=imports), *files)
    assert result.returncode == 0, result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[:3] for line in lines] == [["Transformer", name, "SmoothedCrossEntropy"] for name in optimizers]
    for line, loss in zip(lines, files.values(), strict=True):
        np.testing.assert_allclose([float(x) for x in line[3:]], loss, rtol=1e-4)


@pytest.mark.parametrize("imports", ["import t2t_lite, keras", "import keras, t2t_lite"])
def test_stand_ins_are_there_as_soon_as_keras_is(tmp_path, imports):
    """In a Keras that has a registry and nothing else, and takes no time to import."""
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text("from keras import saving")
    (tmp_path / "keras" / "saving.py").write_text("OBJECTS = {}\ndef get_custom_objects(): return OBJECTS")
    code = f"{imports}; [print(name, one.module) for name, one in keras.saving.get_custom_objects().items()]"
    done = python(code, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert dict(line.split() for line in done.stdout.splitlines()) == keras_files.modules(), done.stderr


def test_every_registered_class_has_a_stand_in():
    """Those that the sources of every room show, whatever imports them."""
    for room in (t2t_lite.layers, t2t_lite.models, t2t_lite.training, t2t_lite.extras):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    for module in keras_files.modules().values():  # of extras
        importlib.import_module(module)
    own = ("t2t_lite>", "baselines>")
    registered = {name: value for name, value in keras.saving.get_custom_objects().items() if name.startswith(own)}
    assert {name: value.__module__ for name, value in registered.items()} == keras_files.modules()
    assert all(isinstance(value, type) for value in registered.values())  # the classes have come in their place


def test_the_package_imports_neither_keras_nor_tensorflow():
    code = "import sys, t2t_lite; print({'keras', 'tensorflow', 'numpy'} & {*sys.modules})"
    result = python(code)
    assert result.stdout == "set()\n", result.stderr
