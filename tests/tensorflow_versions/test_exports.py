"""Exports of every kind, read by other TensorFlows than the one that wrote them, in C and in Python.

`make test-serving` makes an environment .venv-tensorflow-VERSION of TensorFlow and tensorflow-text alone per version.
"""

import base64
import json
import pathlib
import subprocess

import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite.decoding.translator import Translator
from t2t_lite.export import export_saved_model, import_hugging_face
from t2t_lite.text import vocabulary_files
from tests.decoding.runs import make_language_model_run, make_run
from tests.export.c_program import assert_answers, assert_same, build
from tests.export.encoders import KINDS as ENCODERS
from tests.export.encoders import make_predictor
from tests.export.models import translator_of
from tests.export.old_models import PIECES
from tests.export.served import HOSTILE, served
from tests.extras.hugging_face.gpt_folders import write_gpt

ENVIRONMENTS = sorted(pathlib.Path(__file__).parents[2].glob(".venv-tensorflow-*"))
assert ENVIRONMENTS, "`make test-serving` makes them"

ROWS = [b"the red house.", b"", b" ", "Grün".encode(), *(row for row in HOSTILE if len(row) < 1000)]
_TEXTS, _PAIRS = {"inputs": ROWS}, {"inputs": ROWS, "targets": [*reversed(ROWS)]}
_LENGTH, _SEARCH = {"extra_length": 4}, {"alpha": 0.9, "extra_length": 3}


def _subword_translator(folder):
    path = folder / "vocab.subwords"
    path.write_text("".join(f"'{piece}'\n" for piece in PIECES), encoding="utf-8")
    encoder = vocabulary_files.open_encoder(str(path))
    return translator_of({"inputs": encoder, "targets": encoder})


def _gpt2(folder):
    import_hugging_face(write_gpt(folder / "theirs")[0], str(folder / "run"))
    return t2t_lite.load(str(folder / "run"))


def _decided(columns):
    """Returns the rows without contexts of few letters, whose answers are equally probable but for rounding."""
    if "context" not in columns:
        return columns
    rows = [*zip(*columns.values(), strict=True)]
    kept = [row for row in rows if all(len(text) <= 8 * len({*text}) for text in row)]
    assert len(kept) > len(rows) / 2
    return dict(zip(columns, map(list, zip(*kept, strict=True)), strict=True))


# {kind: (folder -> what answers, settings of the export, {signature: (columns, numbers)})}
KINDS = {
    "translation": (
        lambda folder: Translator.load(str(make_run(folder))), _LENGTH,
        {"serving_default": (_TEXTS, {}), "with_options": (_TEXTS, _SEARCH), "n_best": (_TEXTS, {}),
         "tokens": (_TEXTS, {}), "score": (_PAIRS, {})},
    ),
    "translation in bfloat16, rotary positions": (
        lambda folder: Translator.load(str(make_run(folder, pos="rotary")), compute_dtype="bfloat16"), _LENGTH,
        {"serving_default": (_TEXTS, {})},
    ),
    "translation with tensor2tensor's subwords": (_subword_translator, _LENGTH, {"serving_default": (_TEXTS, {})}),
    "language model": (
        lambda folder: t2t_lite.load(str(make_language_model_run(folder))), _LENGTH | {"max_input_length": 20},
        {"serving_default": (_TEXTS, {}), "with_options": (_TEXTS, _SEARCH), "score": (_TEXTS, {})},
    ),
    "GPT-2 that samples": (
        _gpt2, _LENGTH | {"max_input_length": 15, "sampling": True},
        {"generate": (_TEXTS, {}), "with_options": (_TEXTS, {"seed": 3, "extra_length": 2})},
    ),
    **{
        f"encoder: {name}": (
            lambda folder, kind=kind: make_predictor(kind, folder), {"max_input_length": 24} | kind.settings,
            {signature: (_decided(kind.columns), {}) for signature in ("predict", "features")},
        )
        for name, kind in ENCODERS.items()
    },
}  # fmt: skip

# What a program in Python needs: nothing of t2t_lite.
_LOAD = """
import base64, json, sys
import tensorflow as tf, tensorflow_text
answers = {}
for kind, (path, calls) in json.load(sys.stdin).items():
    signatures = tf.saved_model.load(path).signatures
    for signature, (columns, numbers) in calls.items():
        inputs = {key: tf.constant([base64.b64decode(row) for row in rows]) for key, rows in columns.items()}
        types = signatures[signature].structured_input_signature[1]
        inputs |= {key: tf.constant(value, types[key].dtype) for key, value in numbers.items()}
        found = {key: value.numpy().tolist() for key, value in signatures[signature](**inputs).items()}
        answers.setdefault(kind, {})[signature] = found
assert not [name for name in sys.modules if name.startswith("t2t_lite")]
print(json.dumps([tf.__version__, answers], default=lambda value: value.decode("utf-8")))
"""


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """{kind: (path, {signature: (columns, numbers, answers of this TensorFlow)})}."""
    made = {}
    for kind, (make, settings, calls) in KINDS.items():
        path = export_saved_model(make(tmp_path_factory.mktemp("made")), str(tmp_path_factory.mktemp("x")), **settings)
        call, answers = served(path), {}
        for signature, (columns, numbers) in calls.items():
            found = call(signature, columns | numbers)
            answers[signature] = columns, numbers, {name: _plain(value.tolist()) for name, value in found.items()}
        made[kind] = path, answers
    return made


def _plain(value):
    """Returns nested lists with text for bytes."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.decode() if isinstance(value, bytes) else value


@pytest.fixture(scope="module", params=ENVIRONMENTS, ids=lambda path: path.name)
def python(request):
    return request.param / "bin" / "python"


@pytest.fixture(scope="module")
def program(python, tmp_path_factory):
    return build(tmp_path_factory.mktemp("c"), python)


@pytest.mark.parametrize("kind", KINDS)
def test_c(kind, program, exports):
    path, calls = exports[kind]
    for signature, (columns, numbers, expected) in calls.items():
        assert_answers(program, path, signature, columns, expected, **numbers)


def test_python(python, exports, tmp_path):
    coded = {
        kind: (path, {name: ({key: _coded(rows) for key, rows in columns.items()}, numbers)
                      for name, (columns, numbers, _) in calls.items()})
        for kind, (path, calls) in exports.items()
    }  # fmt: skip
    done = subprocess.run(
        [python, "-c", _LOAD], input=json.dumps(coded), capture_output=True, text=True, cwd=tmp_path, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    version, answers = json.loads(done.stdout)
    assert python.parts[-3] == f".venv-tensorflow-{version.rpartition('.')[0]}"
    for kind, (_, calls) in exports.items():
        for signature, (_, _, expected) in calls.items():
            assert_same(answers[kind][signature], expected)


def _coded(rows):
    return [base64.b64encode(row).decode() for row in rows]


def test_this_is_another_tensorflow(exports):
    """At least one environment has another version than the one that writes: TensorFlow Serving's is older."""
    names = {path.name for path in ENVIRONMENTS}
    assert names - {f".venv-tensorflow-{tf.__version__.rpartition('.')[0]}"}
