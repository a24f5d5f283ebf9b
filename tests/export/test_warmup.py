"""Warm-up requests are the bytes that tensorflow-serving-api would write, and need nothing of it."""
# Nearest tests of: t2t_lite/export/signatures.py

import sys

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.export.signatures import PATH, prediction_log, write_warmup

INPUTS = {
    "nothing": {},
    "texts": {"inputs": np.array([b"a", "\u00fc".encode(), b""], object)},
    "numbers": {"inputs": np.array([b"a"], object), "alpha": np.float32([0.6]), "extra_length": np.int32([-1])},
    "long": {"inputs": np.array([b"x" * 127, b"y" * 128, b"z" * 70_000], object), "\u00e4" * 99: np.zeros([300, 7])},
}


@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize(("name", "signature"), [("translate", "serving_default"), ("\u4e8c" * 50, "n_best")])
def test_the_bytes_are_those_of_tensorflow_servings_protos(name, signature, inputs):
    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    expected = apis.PredictionLog()
    request = expected.predict_log.request
    request.model_spec.name, request.model_spec.signature_name = name, signature
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    assert prediction_log(name, signature, inputs) == expected.SerializeToString(deterministic=True)


def test_they_are_written_without_tensorflow_serving_api(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving", None)
    calls = [("serving_default", INPUTS["texts"]), ("with_options", INPUTS["numbers"])]
    write_warmup(str(tmp_path), calls, "m")
    records = [*tf.data.TFRecordDataset(str(tmp_path / PATH)).as_numpy_iterator()]
    assert records == [prediction_log("m", *call) for call in calls]
