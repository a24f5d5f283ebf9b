"""Calls an export as a server does, and looks at its graph."""

import base64
import json
import pathlib

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tests.processes import python

# As TensorFlow Serving does: the loader of version 1, then a session and names of tensors.
_CALL = """
import base64, json, sys
import tensorflow as tf, tensorflow_text
unoptimized = tf.compat.v1.ConfigProto()  # for speed; run_export, which c_program.py starts, does optimize graphs
unoptimized.graph_options.rewrite_options.disable_meta_optimizer = True
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
path, calls = sys.argv[1], json.load(sys.stdin)
decode = lambda rows: [base64.b64decode(row) for row in rows]
answers = []
with tf.Graph().as_default(), tf.compat.v1.Session(config=unoptimized) as session:
    signatures = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def
    for name, texts, options in calls:
        signature = signatures[name]
        values = {key: decode(rows) for key, rows in texts.items()} | options
        feed = {signature.inputs[key].name: value for key, value in values.items()}
        assert feed.keys() == {tensor.name for tensor in signature.inputs.values()}
        found = session.run({key: tensor.name for key, tensor in signature.outputs.items()}, feed)
        answers.append({key: value.tolist() for key, value in found.items()})
serve = tf.saved_model.load(path).signatures["serving_default"]
found = serve(inputs=tf.constant(decode(calls[0][1]["inputs"])))
answers.append({key: value.numpy().tolist() for key, value in found.items()})
assert not [name for name in sys.modules if name.startswith("t2t_lite")]
print(json.dumps(answers, default=lambda value: value.decode("utf-8")))
"""

HOSTILE = [
    b"\xff\xfe red",
    b"a\x00b",
    b"\x00",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    bytes(range(256)),
    b"\r\n",
    b"a" * 100_000,
    b"red house " * 10_000,
    "\ufeff\u200b\u202e".encode(),
    b"<s></s><unk><0x0A>\x1b[31m",
    "البيت הבית the 红色的房子 красный บ้าน".encode(),
    "👩\u200d👩\u200d👧\u200d👦 🇩🇪 👍🏽".encode(),
    ("e" + "\u0301" * 2_000).encode(),
    "\u2581\u2581 \ufffe\uffff\U0010ffff\ue000".encode(),
]


def as_texts(rows):
    """Returns the texts that an export's graph reads in rows of bytes."""
    return [text.decode() for text in tf.strings.unicode_transcode(rows, "UTF-8", "UTF-8").numpy()]


def answers_of(export, calls, folder):
    """Returns an export's answers to calls, in a process of its own.

    Args:
        export: str, path.
        calls: {key: (signature, {name: list of bytes}, {name: other value})}.
        folder: path, empty, where the process runs.

    Returns:
        {key: {name: list}}, and under "loader of version 2" those of `serving_default` to the first call.
    """
    coded = [
        (name, {key: [base64.b64encode(row).decode() for row in rows] for key, rows in texts.items()}, options)
        for name, texts, options in calls.values()
    ]
    done = python(_CALL, export, input=json.dumps(coded), cwd=folder)
    assert done.returncode == 0, done.stderr
    return dict(zip([*calls, "loader of version 2"], json.loads(done.stdout), strict=True))


def served(export):
    """Returns a function that calls an export by the loader of TensorFlow Serving, in this process.

    The function: (name of a signature, {input: list of bytes, or another value}) -> {output: array}.
    """
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # takes longer than all that is computed here
    with tf.Graph().as_default():
        session = tf.compat.v1.Session(config=config)
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], export).signature_def

    def call(name, inputs):
        signature = signatures[name]
        assert inputs.keys() == signature.inputs.keys()
        feed = {signature.inputs[key].name: values for key, values in inputs.items()}
        return session.run({key: tensor.name for key, tensor in signature.outputs.items()}, feed)

    return call


def answers_here(export, calls):
    """As `answers_of`, in this process and by that loader alone."""
    call = served(export)
    found = {key: call(name, texts | options) for key, (name, texts, options) in calls.items()}
    return {key: {name: _decoded(values.tolist()) for name, values in one.items()} for key, one in found.items()}


def _decoded(values):
    if isinstance(values, list):
        return [_decoded(value) for value in values]
    return values.decode() if isinstance(values, bytes) else values


def stock_operations(export):
    """Returns the names of all operations of an export, after checking that the stock server has them."""
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString(pathlib.Path(export, "saved_model.pb").read_bytes())
    (meta,) = proto.meta_graphs
    functions = meta.graph_def.library.function
    nodes = [*meta.graph_def.node, *(node for function in functions for node in function.node_def)]
    text_operations = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
    text_operations |= {"SentencepieceTokenizeWithOffsetsOp", "FastWordpieceTokenizeWithOffsets"}
    names = {function.signature.name for function in functions}
    for node in nodes:
        assert not node.op.startswith("Xla"), node.op
        assert node.op in names | text_operations or hasattr(tf.raw_ops, node.op), node.op
        assert node.device == "" or node.device.startswith("/device:CPU"), "a server may have no other"
    for attributes in [node.attr for node in nodes] + [function.attr for function in functions]:
        for name in ("_XlaMustCompile", "_XlaCompile"):
            assert name not in attributes or not attributes[name].b
    return {node.op for node in nodes}
