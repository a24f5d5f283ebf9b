"""The exports of encoders, called as a server does: each task's answers, and features."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.export import export_saved_model
from t2t_lite.export.encoder_signatures import EncoderSignatures
from tests.export.encoders import KINDS, LONGEST, TEXTS, make_predictor
from tests.export.served import as_texts, served, stock_operations
from tests.registered import registered

pytestmark = pytest.mark.slow


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[] if name in ("spans", "masks") else pytest.mark.long)
        for name, kind in KINDS.items()
        if registered([kind.problem.task])
    ],
)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(scope="module")
def predictor(kind, tmp_path_factory):
    return make_predictor(kind, tmp_path_factory.mktemp("vocab"))


@pytest.fixture(scope="module")
def exported(kind, predictor, tmp_path_factory):
    settings = {"max_input_length": LONGEST, **kind.settings}
    return export_saved_model(predictor, str(tmp_path_factory.mktemp("export")), **settings)


@pytest.fixture(scope="module")
def call(exported):
    return served(exported)


def check(found, expected):
    """A row may be padded, with "" or 0."""
    if np.ndim(found):
        assert not np.any(found[len(expected) :])
        found = found[: len(expected)].tolist()
    if np.asarray(found).dtype.kind == "f":
        np.testing.assert_allclose(found, expected, atol=2e-5)
    else:
        decoded = np.vectorize(lambda value: value.decode() if isinstance(value, bytes) else value, otypes="O")
        assert np.array_equal(decoded(np.array(found, object)), np.array(expected, object))


def test_it_answers_as_predictor_does(kind, predictor, call):
    found = call("serving_default", kind.columns)
    kept = np.flatnonzero(~found["truncated"])
    assert len(kept) > 10 and (len(kept) == len(found["truncated"])) == (kind.head == "tag")
    rows = [[*column] for column in zip(*(as_texts(column) for column in kind.columns.values()), strict=True)]
    texts = [row if len(row) > 1 else row[0] for row in rows]
    for name, rows in kind.expected(predictor, [texts[at] for at in kept]).items():
        for at, expected in zip(kept, rows, strict=True):
            check(found[name][at], expected)
    options = {name: value for name, value in kind.settings.items() if name not in ("top", "max_input_length")}
    features = call("features", kind.columns)
    kept = np.flatnonzero(~features["truncated"])
    for at, expected in zip(kept, predictor.features([texts[at] for at in kept], **options), strict=True):
        values = features["features"][at]
        if "pooling" not in options:
            assert features["lengths"][at] == len(expected) and not values[len(expected) :].any()
            values = values[: len(expected)]
        np.testing.assert_allclose(values, expected, atol=2e-4)


@pytest.mark.parametrize("name", ["pairs", "numbers"])
def test_the_functions_answer_as_predictor_does(eager, name, tmp_path):
    """Without an export, for the kinds whose exports take longer."""
    kind = KINDS[name]
    predictor = make_predictor(kind, tmp_path)
    signatures = EncoderSignatures(predictor, LONGEST, **kind.settings)
    columns = [[*column[:4]] for column in kind.columns.values()]
    texts = [row if len(row) > 1 else row[0] for row in zip(*map(as_texts, columns), strict=True)]
    found = {key: value.numpy() for key, value in signatures.predict(*map(tf.constant, columns)).items()}
    for key, rows in kind.expected(predictor, texts).items():
        for row, expected in zip(found[key], rows, strict=True):
            check(row, expected)
    features = {key: value.numpy() for key, value in signatures.features(*map(tf.constant, columns)).items()}
    assert ("lengths" in features) == ("pooling" not in kind.settings)
    for at, expected in enumerate(predictor.features(texts, **kind.settings)):
        values = features["features"][at]
        np.testing.assert_allclose(values[: len(expected)] if "lengths" in features else values, expected, atol=2e-4)
    predictor.model.config["features_pooling"] = "mean"
    each = EncoderSignatures(predictor, LONGEST, pooling="none").features(*map(tf.constant, columns))
    assert "lengths" in each and each["features"].shape.rank == 3, "of all positions, as asked"
    with pytest.raises(UserError, match="max_input_length"):
        EncoderSignatures(predictor, 0, **kind.settings)


def test_every_word_of_a_long_sentence_is_tagged(tmp_path):
    """In rows that just fit, that a word more would not fit, of one piece and the end, and of words that are cut."""
    pytest.importorskip("t2t_lite.extras.tagging")
    predictor = make_predictor(KINDS["tags"], tmp_path)
    count = len(predictor.encoders["inputs"].encode("the the the"))
    text = "the old house the " + "the" * 40 + " a the the"
    for longest in (count + 1, count, 2, 12):
        found = EncoderSignatures(predictor, longest).predict(tf.constant(["", text, "the the the", "the"]))
        every = [predictor.predict([one], max_length=max(longest, 4))[0] for one in ("", text, "the the the", "the")]
        assert not found["truncated"].numpy().any()
        for at, expected in enumerate(every):
            check(found["words"][at].numpy(), expected.words)
            if longest >= 4:  # what `predict` allows
                check(found["tags"][at].numpy(), expected.tags)
                check(found["probabilities"][at].numpy(), expected.probabilities)


@pytest.mark.few("masks", "spans")
def test_no_row_changes_another(kind, call):
    for signature in ("predict", "features"):
        together = call(signature, kind.columns)
        for at in range(0, len(TEXTS), 3):
            alone = call(signature, {name: rows[at : at + 1] for name, rows in kind.columns.items()})
            for name, (value,) in alone.items():
                row = together[name][at]
                row = row[: len(value)] if np.ndim(value) else row
                if np.asarray(value).dtype.kind == "f":
                    np.testing.assert_allclose(row, value, atol=2e-4)
                else:
                    assert np.array_equal(row, value)
        assert not any(map(len, call(signature, {name: [] for name in kind.columns}).values()))


def test_of_stock_operations(exported):
    stock_operations(exported)


def test_its_card(kind, exported):
    pytest.importorskip("t2t_lite.extras.model_card")
    text = pathlib.Path(exported, "README.md").read_text()
    for words in (
        "| `serving_default`, `predict` |",
        "| `features` |",
        f"{kind.settings.get('max_input_length', LONGEST)} pieces",
        *kind.card,
    ):
        assert words in text, words


def test_unequal_numbers_of_texts(kind, call):
    if len(kind.columns) > 1:
        (first, rows), (second, _) = kind.columns.items()
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"as many {second} as {first}"):
            call("predict", {first: rows, second: rows[1:]})


@pytest.mark.parametrize(
    "wrong", [{"max_input_length": 100_000}, {"layers": "middle"}, {"layers": "all"}, {"pooling": "median"}, {"top": 0}]
)
def test_mistakes(kind, predictor, tmp_path, wrong):
    if "top" in wrong and kind.head != "masked_lm":
        return
    with pytest.raises(
        UserError, match=next(iter(wrong)).replace("layers", "join" if "all" in wrong.values() else "layers")
    ):
        export_saved_model(predictor, str(tmp_path / "x"), **wrong)
    assert not (tmp_path / "x").exists()


def test_an_unknown_setting_is_named_with_the_known_ones(predictor, tmp_path):
    with pytest.raises(TypeError, match=r"^export_saved_model\(\) has no argument `layer`\. Nearest: layers\."):
        export_saved_model(predictor, str(tmp_path / "x"), layer="last")
    with pytest.raises(TypeError, match=r"no argument `beam_size`\. Expected one or more of layers, join, pooling"):
        export_saved_model(predictor, str(tmp_path / "x"), beam_size=3)
