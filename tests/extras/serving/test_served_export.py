"""An export that is loaded for serving, and what its errors are to a caller."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.extras.serving.model_versions import load_export
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.extras.serving.served_export import ServedExport, Signature, model_errors

TEXTS = tf.TensorSpec([None], tf.string, "inputs")
NUMBERS = tf.TensorSpec([], tf.float32, "alpha"), tf.TensorSpec([], tf.int32, "extra_length")


def ended(inputs, *numbers):
    texts = tf.strings.join([inputs, "."])
    scores = tf.cast(tf.strings.length(inputs), tf.float32) + sum(tf.cast(number, tf.float32) for number in numbers)
    return {"outputs": texts, "scores": scores, "truncated": scores > 3}


def features(inputs):
    lengths = tf.strings.length(inputs)
    return {"features": tf.zeros([tf.size(inputs), tf.reduce_max(lengths), 2]), "lengths": lengths}


FUNCTIONS = {
    "serving_default": (ended, [TEXTS]),
    "with_options": (lambda inputs, alpha, extra_length: ended(inputs, alpha, extra_length), [TEXTS, *NUMBERS]),
    "sentences": (ended, [TEXTS]),
    "features": (features, [TEXTS]),
    "count": (lambda inputs: {"count": tf.size(inputs)}, [TEXTS]),
}


@pytest.fixture(scope="module", params=[True, False], ids=["of sentences", "of texts"])
def path(request, tmp_path_factory):
    """The folder of an export, whose model was trained on single sentences or not."""
    module, path = tf.Module(), tmp_path_factory.mktemp("export")
    names = [name for name in FUNCTIONS if request.param or name != "sentences"]
    functions = {name: tf.function(FUNCTIONS[name][0], FUNCTIONS[name][1]) for name in names}
    tf.saved_model.save(module, str(path), {name: one.get_concrete_function() for name, one in functions.items()})
    return path


def test_signatures(path):
    export = ServedExport(str(path))
    assert export.created == int((path / "saved_model.pb").stat().st_mtime)
    has_sentences = "sentences" in export.signatures
    assert {*export.signatures} == {*FUNCTIONS} - ({"sentences"} if not has_sentences else set())
    kinds = ("is_of_texts", "wants_sentences", "rows_are_independent")
    found = {name: tuple(getattr(one, kind) for kind in kinds) for name, one in export.signatures.items()}
    expected = {"serving_default": (True, has_sentences, True), "with_options": (True, has_sentences, True)}
    expected |= {"sentences": (False, False, True), "features": (False, False, False), "count": (False, False, False)}
    assert found == {name: expected[name] for name in found}
    inputs = {"inputs": np.array([b"a", "ü\x00".encode()], object), "alpha": np.float32(0.5), "extra_length": 2}
    outputs = export.signatures["with_options"](inputs)
    assert outputs["outputs"].tolist() == [b"a.", "ü\x00.".encode()] and outputs["scores"].tolist() == [3.5, 5.5]
    assert outputs["truncated"].tolist() == [True, True]
    spec = export.signature_def["with_options"]
    assert spec["method_name"] == "tensorflow/serving/predict"
    assert {name: one["dtype"] for name, one in spec["inputs"].items()} == {
        "inputs": "DT_STRING", "alpha": "DT_FLOAT", "extra_length": "DT_INT32"
    }  # fmt: skip
    assert spec["inputs"]["inputs"]["tensor_shape"] == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}


def test_every_signature_is_called_before_the_first_request(path, monkeypatch):
    calls, call = [], Signature.__call__
    monkeypatch.setattr(Signature, "__call__", lambda self, inputs: calls.append(inputs) or call(self, inputs))
    export = load_export(str(path))
    assert len(calls) == len(export.signatures) and export.generator is None
    assert all(inputs["inputs"].shape == (1,) for inputs in calls)


ERRORS = {
    "a shape": (tf.errors.InvalidArgumentError(None, None, "\tat x\nDetected at y\n<stack traces>\n\nGraph execution "
                "error:\nwrong shape\nmore"), "INVALID_ARGUMENT", "^wrong shape$"),
    "nothing": (tf.errors.InvalidArgumentError(None, None, ""), "INVALID_ARGUMENT", "^the model refused the inputs$"),
    "memory": (tf.errors.ResourceExhaustedError(None, None, "OOM"), "RESOURCE_EXHAUSTED", "^out of memory"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "code", "message"), ERRORS.values(), ids=ERRORS)
def test_errors_of_a_model(error, code, message):
    with pytest.raises(Refusal, match=message) as refusal, model_errors():
        raise error
    assert refusal.value.code == code


def test_a_bug_stays_one():
    with pytest.raises(ZeroDivisionError), model_errors():
        raise ZeroDivisionError
