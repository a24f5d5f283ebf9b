"""Loads an export for serving: its signatures as functions of arrays, without the Keras model."""

import contextlib
import os

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers SentencePiece's operations)
from google.protobuf import json_format
from tensorflow.core.protobuf import saved_model_pb2

from t2t_lite.corpora.sentences import SENTENCES
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.files import plain_folder
from t2t_lite.files.file_system import status

_TEXT_SIGNATURES, _OUTPUTS = {"serving_default", "with_options"}, {"outputs", "scores", "truncated"}


class ServedExport:
    """A loaded SavedModel that t2t-exporter wrote.

    Args:
        path: str, the folder of the SavedModel.

    Attributes:
        path: the argument.
        signatures: {name: Signature}.
        signature_def: dict, the signatures as JSON, as in TensorFlow Serving's metadata call.
        generator: ServedGenerator if the server streams texts, else None.
        created: int, time at which the export was written, in seconds since 1970.
    """

    generator = None

    def __init__(self, path):
        self.path = path
        graph_path = os.path.join(path, "saved_model.pb")
        self.created = status(graph_path).modified_ns // 10**9
        with tf.io.gfile.GFile(graph_path, "rb") as file:
            (graph,) = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
        names = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
        self.signature_def = {
            name: json_format.MessageToDict(proto, **names) for name, proto in graph.signature_def.items()
        }
        self._model = tf.saved_model.load(plain_folder(path))  # the signatures do not keep the variables alive
        self.signatures = {name: Signature(function) for name, function in self._model.signatures.items()}
        for name in _TEXT_SIGNATURES & self.signatures.keys():
            signature = self.signatures[name]
            signature.is_of_texts = {*self.signature_def[name]["outputs"]} == _OUTPUTS
            signature.wants_sentences = signature.is_of_texts and SENTENCES in self.signatures

    def warm_up(self):
        """Calls every signature once with one row, because the first call also optimizes the graph."""
        for signature in self.signatures.values():
            signature(
                {
                    name: np.full([1] * (spec.shape.rank or 0), b"a" if spec.dtype == tf.string else 0)
                    for name, spec in signature.inputs.items()
                }
            )


class Signature:
    """A function of an export, from arrays to arrays.

    Args:
        function: an entry of `signatures` of a loaded SavedModel.

    Attributes:
        inputs: {name: tf.TensorSpec}.
        rows_are_independent: bool, whether requests can be computed together. This is the case if the first axis of
            every output is the batch and the other axes are fixed. Otherwise rows would be padded to the longest row of
            other requests.
        is_of_texts: bool, whether the function maps texts to texts, and the outputs of sentences can be joined.
        wants_sentences: bool, whether `is_of_texts` is true and the model was trained on single sentences.
    """

    is_of_texts = wants_sentences = False

    def __init__(self, function):
        self._function = function
        self.inputs = dict(function.structured_input_signature[1])
        shapes = [spec.shape for spec in function.structured_outputs.values()]
        self.rows_are_independent = all(
            shape.rank and shape[0] is None and shape[1:].is_fully_defined() for shape in shapes
        )

    def __call__(self, inputs):
        """Maps {input: array} to {output: array}. Texts are bytes in object arrays. Raises `tf.errors.OpError`."""
        tensors = {name: tf.constant(value, self.inputs[name].dtype) for name, value in inputs.items()}
        return {name: np.asarray(value.numpy()) for name, value in self._function(**tensors).items()}


@contextlib.contextmanager
def model_errors():
    """Context manager for calls of a model. Turns errors that the inputs caused into `Refusal`."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        raise Refusal(_reason(error)) from None
    except tf.errors.ResourceExhaustedError:
        raise Refusal("out of memory; send fewer or shorter texts at a time", "RESOURCE_EXHAUSTED") from None


def _reason(error):
    """Returns the line of TensorFlow's message that describes the error, without the location in the graph."""
    heads = ("Graph execution error", "Detected at", "<stack traces", "\t")
    lines = [line for line in error.message.splitlines() if line and not line.startswith(heads)]
    return lines[0] if lines else "the model refused the inputs"
