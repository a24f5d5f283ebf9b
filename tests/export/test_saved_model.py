"""The export is called as a server does: in a process with TensorFlow and tensorflow-text alone."""

import os
import pathlib

import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import Failure, UserError
from t2t_lite.export.saved_model import export_saved_model
from t2t_lite.text import reading_graph
from tests.decoding.runs import make_run
from tests.export.c_program import assert_answers
from tests.export.served import HOSTILE, answers_of, as_texts, stock_operations

pytestmark = pytest.mark.slow  # a process of its own serves

_OPTIONS = {"beam_size": 3, "alpha": 0.8, "extra_length": 6}
_LONGEST = 24

TEXTS = ["the red house.", "", "a green tree", " \u2003\t", "old", "Gr\u00fcn \U0001f600\u2028neu", "is " * 200]
ROWS = [*[text.encode() for text in TEXTS], *HOSTILE]
_OTHERS = [*ROWS[1:], ROWS[0]]
_ALONE = range(0, len(ROWS), 4)
_SIGNATURES = ("serving_default", "with_options", "n_best", "tokens", "score")
_WITH = {"alpha": 0.2, "extra_length": 3}
# Out of range: alpha, extra_length, and what they count as.
_ODD = [(float("nan"), 3, 0.8, 3), (-1.0, -5, 0.0, 0), (float("inf"), 2**31 - 1, 5.0, 512)]


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return Translator.load(str(make_run(tmp_path_factory.mktemp("run"))))


@pytest.fixture(scope="module")
def exported(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    return export_saved_model(translator, str(folder), max_input_length=_LONGEST, **_OPTIONS)


def _call(name, rows, others, options=None):
    texts = {"inputs": rows, **({"targets": others} if name == "score" else {})}
    return name, texts, (options or _WITH) if name == "with_options" else {}


@pytest.fixture(scope="module")
def answers(exported, tmp_path_factory):
    """What the export answers in a process of its own: to all rows, to none, to some rows alone, and more."""
    calls = {}
    for name in _SIGNATURES:
        calls[name, "together"] = _call(name, ROWS, _OTHERS)
        calls[name, "none"] = _call(name, [], [])
        for at in _ALONE:
            calls[name, at] = _call(name, [ROWS[at]], [_OTHERS[at]])
    some = ROWS[:3]
    by_row = {"alpha": [0.2, 0.8, 2.0], "extra_length": [3, 6, 1]}
    calls["by row"] = _call("with_options", some, None, by_row)
    for number, (alpha, extra_length, *_) in enumerate(_ODD):
        calls["odd", number] = _call("with_options", some, None, {"alpha": alpha, "extra_length": extra_length})
    return answers_of(exported, calls, tmp_path_factory.mktemp("elsewhere"))


def _assert_same(found, translations):
    assert found["outputs"] == [t.text for t in translations]
    assert found["scores"] == pytest.approx([t.score for t in translations], abs=1e-4)
    assert found["truncated"] == [t.truncated for t in translations]


def test_a_path_is_no_model(tmp_path):
    with pytest.raises(TypeError, match=r"^answerer='run' is a path\. Expected .* t2t_lite\.load\('run'\)\.$"):
        export_saved_model("run", str(tmp_path / "export"))
    assert not any(tmp_path.iterdir())


def test_it_translates_as_translator_does(translator, answers):
    found = answers["serving_default", "together"]
    _assert_same(found, translator.translate(as_texts(ROWS), max_input_length=_LONGEST, **_OPTIONS))
    assert found["truncated"][: len(TEXTS)] == [False] * (len(TEXTS) - 1) + [True]
    newer = answers["loader of version 2"]
    assert newer["outputs"] == found["outputs"] and newer["scores"] == pytest.approx(found["scores"], abs=1e-4)


def test_options_of_a_call(translator, answers):
    texts = as_texts(ROWS)
    others = _OPTIONS | _WITH
    _assert_same(answers["with_options", "together"], translator.translate(texts, max_input_length=_LONGEST, **others))
    alone = [
        translator.translate([text], max_input_length=_LONGEST, **{**_OPTIONS, "alpha": alpha, "extra_length": extra})[
            0
        ]
        for text, alpha, extra in zip(texts[:3], [0.2, 0.8, 2.0], [3, 6, 1], strict=True)
    ]
    _assert_same(answers["by row"], alone)
    for number, (_, _, alpha, extra) in enumerate(_ODD):
        options = {**_OPTIONS, "alpha": alpha, "extra_length": extra}
        _assert_same(answers["odd", number], translator.translate(texts[:3], max_input_length=_LONGEST, **options))


@pytest.mark.long  # tests/deploy/test_c_program.py has it with a small graph
def test_a_c_program_gets_the_same_answers(c_program, exported, answers):
    """Options are given as numbers, several texts as columns."""
    assert_answers(c_program, exported, "with_options", {"inputs": ROWS}, answers["with_options", "together"], **_WITH)
    columns = {"inputs": ROWS, "targets": _OTHERS}
    assert_answers(c_program, exported, "score", columns, answers["score", "together"])


def test_n_best(translator, answers):
    texts = as_texts(ROWS)
    expected = translator.translate(texts, max_input_length=_LONGEST, n_best=3, **_OPTIONS)
    found = answers["n_best", "together"]
    assert found["truncated"] == [t.truncated for t in expected]
    for outputs, scores, translation in zip(found["outputs"], found["scores"], expected, strict=True):
        missing = 3 - len(translation.hypotheses)
        assert outputs == [h.text for h in translation.hypotheses] + [""] * missing
        assert scores == pytest.approx([h.score for h in translation.hypotheses] + [tf.float32.min] * missing, abs=1e-4)


def test_tokens(translator, answers):
    texts = as_texts(ROWS)
    expected = translator.translate(texts, max_input_length=_LONGEST, **_OPTIONS)
    found = answers["tokens", "together"]
    _assert_same(found, expected)
    for at, translation in enumerate(expected):
        for name, pieces in (("", translation.tokens), ("input_", translation.source_tokens)):
            tokens, ids = found[f"{name}tokens"][at], found[f"{name}ids"][at]
            assert tokens == pieces + [""] * (len(tokens) - len(pieces))
            assert [i != 0 for i in ids] == [token != "" for token in tokens]
        ids = [i for i in found["ids"][at] if i]
        assert ids == translation.hypotheses[0].ids


def test_unequal_numbers_of_inputs_and_targets_are_refused(exported):
    """Whichever are more; equal ones, and none at all, are scored."""
    score = tf.saved_model.load(exported).signatures["score"]
    for inputs, targets in ((2, 1), (1, 2), (0, 1), (1, 0), (3, 2)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="as many targets as inputs"):
            score(inputs=tf.constant(["a"] * inputs, tf.string), targets=tf.constant(["b"] * targets, tf.string))
    for count in (0, 1, 3):
        texts = tf.constant(["a"] * count, tf.string)
        assert score(inputs=texts, targets=texts)["scores"].shape == (count,)


def test_scores_of_given_targets(translator, answers):
    fits = [at for at, cut in enumerate(answers["score", "together"]["truncated"]) if not cut]
    inputs, targets = (as_texts([rows[at] for at in fits]) for rows in (ROWS, _OTHERS))
    assert len(inputs) > 10
    found = answers["score", "together"]
    for at, expected in zip(fits, translator.score(inputs, targets), strict=True):
        length = len(expected.token_log_probs)
        assert found["lengths"][at] == length
        assert found["scores"][at] == pytest.approx(expected.log_prob, abs=1e-4)
        assert found["token_scores"][at][:length] == pytest.approx(expected.token_log_probs, abs=1e-4)
        assert not any(found["token_scores"][at][length:])


@pytest.mark.parametrize("name", _SIGNATURES)
def test_no_row_changes_another(answers, name):
    """Each answer alone is its answer among all the hostile rows; rows of lists are longer there, by padding."""
    together = answers[name, "together"]
    assert all(len(values) == len(ROWS) for values in together.values())
    for at in _ALONE:
        for key, (alone,) in answers[name, at].items():
            among = together[key][at]
            if isinstance(alone, list):
                assert not any(among[len(alone) :])
                among = among[: len(alone)]
            kind = pytest.approx(alone, abs=1e-4) if key in ("scores", "token_scores") else alone
            assert among == kind, (ROWS[at][:50], key)
    assert all(values == [] for values in answers[name, "none"].values())


@pytest.mark.parametrize("step", [101, pytest.param(1, marks=pytest.mark.long)])
def test_blank_is_what_python_calls_white_space(step):
    """Of all characters of the plane where each of these is, and of some of the others or all."""
    characters = [chr(i) for i in (*range(1, 0xD800), *range(0xE000, 0x10000), *range(0x10000, 0x110000, step))]
    found = tf.strings.regex_full_match(tf.constant(characters), reading_graph.BLANK).numpy()
    assert [c for c, blank in zip(characters, found, strict=True) if blank != c.isspace()] == []


def test_only_operations_of_the_stock_server(exported):
    assert "SentencepieceTokenizeOp" in stock_operations(exported)


def test_exports_are_numbered(translator, tmp_path, monkeypatch):
    monkeypatch.setattr(tf.saved_model, "save", lambda module, path, signatures: None)
    folder = tmp_path / "new" / "export"
    for other in ("7", "notes", "9.incomplete"):
        (folder / other).mkdir(parents=True)
    assert export_saved_model(translator, str(folder)) == str(folder / "8")
    assert export_saved_model(translator, str(folder)) == str(folder / "9")
    assert sorted(os.listdir(folder)) == ["7", "8", "9", "9.incomplete", "notes"]


def test_a_failed_export_leaves_nothing(translator, tmp_path, monkeypatch):
    def fail(module, path, signatures):
        pathlib.Path(path, "half").write_bytes(b"")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", fail)
    with pytest.raises(Failure, match="No space left"):
        export_saved_model(translator, str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_mistakes(translator, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="a file is in the way"):
        export_saved_model(translator, str(tmp_path / "file"))
    with pytest.raises(UserError, match="beam_size=0"):
        export_saved_model(translator, str(tmp_path / "out"), beam_size=0)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_model_with_a_table_of_positions(tmp_path):
    """The limit ends with the table, and longer inputs are cut to it."""
    run = make_run(tmp_path, pos="emb", max_position=10)
    translator = Translator.load(str(run))
    serve = tf.saved_model.load(export_saved_model(translator, str(tmp_path / "export")))
    found = serve.signatures["serving_default"](inputs=tf.constant(["red " * 30, "a"]))
    expected = translator.translate(["red " * 30, "a"])
    assert [text.decode() for text in found["outputs"].numpy()] == [t.text for t in expected]
    assert found["truncated"].numpy().tolist() == [True, False]
    with pytest.raises(UserError, match="has only 10"):
        export_saved_model(translator, str(tmp_path / "export"), max_input_length=11)
