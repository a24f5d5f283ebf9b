"""The export is called as a server does: in a process with TensorFlow and tensorflow-text alone."""

import base64
import json
import os
import pathlib
import subprocess
import sys

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from t2t_lite.config import HParams
from t2t_lite.data.vocabulary import TokenTextEncoder
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import Failure, UserError
from t2t_lite.export import saved_model
from t2t_lite.export.saved_model import export_saved_model
from t2t_lite.models.transformer import Transformer
from tests.decoding.runs import make_run

_OPTIONS = {"beam_size": 3, "alpha": 0.8, "extra_length": 6}
_LONGEST = 24

_CALL = """
import base64, json, sys
import tensorflow as tf, tensorflow_text
path, rows = sys.argv[1], [base64.b64decode(row) for row in json.load(sys.stdin)]
serve = tf.saved_model.load(path).signatures["serving_default"]
found = {"together": serve(inputs=tf.constant(rows, tf.string)), "none": serve(inputs=tf.constant([], tf.string))}
alone = [serve(inputs=tf.constant([row], tf.string)) for row in rows]
found["alone"] = {key: tf.concat([one[key] for one in alone], 0) for key in alone[0]}
answers = {name: {key: value.numpy().tolist() for key, value in answer.items()} for name, answer in found.items()}
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    signature = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
    fetches = {key: tensor.name for key, tensor in signature.outputs.items()}
    answer = session.run(fetches, {signature.inputs["inputs"].name: rows})
    answers["v1"] = {key: value.tolist() for key, value in answer.items()}
assert not [name for name in sys.modules if name.startswith("t2t_lite")]
print(json.dumps(answers, default=lambda value: value.decode("utf-8")))
"""

TEXTS = ["the red house.", "", "a green tree", " \u2003\t", "old", "Grün \U0001f600\u2028neu", "is " * 200]
HOSTILE = [
    b"\xff\xfe red",
    b"a\x00b",
    b"\x00",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    bytes(range(256)),
    b"\r\n",
]
HOSTILE += [b"a" * 100_000, "\ufeff\u200b\u202e".encode(), b"<s></s><0x0A>\x1b[31m"]


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return Translator.load(str(make_run(tmp_path_factory.mktemp("run"))))


@pytest.fixture(scope="module")
def exported(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    return export_saved_model(translator, str(folder), max_input_length=_LONGEST, **_OPTIONS)


@pytest.fixture(scope="module")
def answers(exported, tmp_path_factory):
    """What the export answers in a process of its own."""
    rows = [base64.b64encode(row).decode() for row in (*[text.encode() for text in TEXTS], *HOSTILE)]
    done = subprocess.run(
        [sys.executable, "-c", _CALL, exported],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("elsewhere"),
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_translates_as_translator_does(translator, answers):
    found = answers["together"]
    for at, ours in enumerate(translator.translate(TEXTS, max_input_length=_LONGEST, **_OPTIONS)):
        assert found["outputs"][at] == ours.text
        assert found["scores"][at] == pytest.approx(ours.score, abs=1e-4)
        assert found["truncated"][at] == ours.truncated
    assert found["truncated"][: len(TEXTS)] == [False] * (len(TEXTS) - 1) + [True]


@pytest.mark.parametrize("other", ["alone", "v1"])
def test_no_row_changes_another_and_the_old_loader_agrees(answers, other):
    assert answers["together"]["outputs"] == answers[other]["outputs"]
    assert answers["together"]["truncated"] == answers[other]["truncated"]
    assert answers["together"]["scores"] == pytest.approx(answers[other]["scores"], abs=1e-4)


def test_any_bytes_have_an_answer(answers):
    assert [len(answers["together"][key]) for key in ("outputs", "scores", "truncated")] == [len(TEXTS + HOSTILE)] * 3
    assert answers["none"] == {"outputs": [], "scores": [], "truncated": []}


def test_blank_gives_blank(answers):
    for at in (1, 3, TEXTS.index(" \u2003\t"), len(TEXTS) + HOSTILE.index(b"\r\n")):
        assert answers["together"]["outputs"][at] == "" and answers["together"]["scores"][at] == 0.0


def test_bytes_that_are_not_utf_8_are_replaced(translator, answers):
    (expected,) = translator.translate(["\ufffd\ufffd red"], max_input_length=_LONGEST, **_OPTIONS)
    assert answers["together"]["outputs"][len(TEXTS)] == expected.text


def test_blank_is_what_python_calls_white_space():
    characters = [chr(i) for i in range(1, 0x110000) if not 0xD800 <= i < 0xE000]
    found = tf.strings.regex_full_match(tf.constant(characters), saved_model._BLANK).numpy()
    assert [c for c, blank in zip(characters, found, strict=True) if blank != c.isspace()] == []


def test_only_operations_of_the_stock_server(exported):
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString(pathlib.Path(exported, "saved_model.pb").read_bytes())
    (meta,) = proto.meta_graphs
    functions = meta.graph_def.library.function
    nodes = [*meta.graph_def.node, *(node for function in functions for node in function.node_def)]
    assert "SentencepieceTokenizeOp" in {node.op for node in nodes}
    text_operations = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
    names = {function.signature.name for function in functions}
    for node in nodes:
        assert not node.op.startswith("Xla"), node.op
        assert node.op in names | text_operations or hasattr(tf.raw_ops, node.op), node.op
    for attributes in [node.attr for node in nodes] + [function.attr for function in functions]:
        for name in ("_XlaMustCompile", "_XlaCompile"):
            assert name not in attributes or not attributes[name].b


def test_exports_are_numbered(translator, tmp_path, monkeypatch):
    monkeypatch.setattr(tf.saved_model, "save", lambda module, path, signatures: os.makedirs(path))
    folder = tmp_path / "new" / "export"
    for other in ("7", "notes", "9.incomplete"):
        (folder / other).mkdir(parents=True)
    assert export_saved_model(translator, str(folder)) == str(folder / "8")
    assert export_saved_model(translator, str(folder)) == str(folder / "9")
    assert sorted(os.listdir(folder)) == ["7", "8", "9", "notes"]


def test_a_failed_export_leaves_nothing(translator, tmp_path, monkeypatch):
    def fail(module, path, signatures):
        os.makedirs(path)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(Failure, match="No space left"):
        export_saved_model(translator, str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_mistakes(translator, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="not a folder"):
        export_saved_model(translator, str(tmp_path / "file"))
    with pytest.raises(UserError, match="beam_size=0"):
        export_saved_model(translator, str(tmp_path / "out"), beam_size=0)
    assert not (tmp_path / "out").exists()


def test_a_model_with_a_table_of_positions(tmp_path):
    """The limit ends with the table, and longer inputs are cut to it."""
    run = make_run(tmp_path, pos="emb", max_position=10)
    translator = Translator.load(str(run))
    serve = tf.saved_model.load(export_saved_model(translator, str(tmp_path / "export"), max_input_length=10))
    found = serve.signatures["serving_default"](inputs=tf.constant(["red " * 30, "a"]))
    expected = translator.translate(["red " * 30, "a"])
    assert [text.decode() for text in found["outputs"].numpy()] == [t.text for t in expected]
    assert found["truncated"].numpy().tolist() == [True, False]
    with pytest.raises(UserError, match="table of positions ends at 10"):
        export_saved_model(translator, str(tmp_path / "export"))


def test_a_vocabulary_of_words_goes_along(tmp_path):
    """Its table is a resource, which the export has to hold."""
    path = tmp_path / "vocab.tokens"
    path.write_text("<pad>\n<EOS>\nUNK\nred\nhouse\n")
    encoder = TokenTextEncoder(str(path), replace_oov="UNK")
    hparams = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2)
    model = Transformer.from_hparams(hparams, vocab_size=encoder.vocab_size)
    translator = Translator(model, {"inputs": encoder, "targets": encoder}, hparams)
    exported = export_saved_model(translator, str(tmp_path / "export"), extra_length=4)
    texts = ["red house", "an unknown word", "red"]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], exported).signature_def["serving_default"]
        found = session.run(signature.outputs["outputs"].name, {signature.inputs["inputs"].name: texts})
    assert [text.decode() for text in found] == [t.text for t in translator.translate(texts, extra_length=4)]
