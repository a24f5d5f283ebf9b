"""Labels and numbers of the user's own texts and pairs of texts: what records hold, and what is checked of files."""
# Nearest tests of: t2t_lite/text/rows.py

import functools
import json

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.text.rows import cut_texts
from tests.problems.own import (
    CHARACTERS,
    NUMBERS,
    PAIRS,
    SINGLE,
    configured,
    files_of,
    generated,
    parts_of,
    removed_of,
    rows_of,
)


@pytest.mark.parametrize(
    "name, content, first, label",
    [
        ("classify_own", SINGLE, ["the number 0 is here"], "even"),
        ("classify_pair_own", PAIRS, ["number 0", "number 30 or 31"], "less"),
    ],
)
def test_records_hold_the_texts_and_the_label(name, content, first, label, tmp_path):
    generated(name, tmp_path, vocab_size=300, **files_of(tmp_path, train=content, dev=content, test=content))
    problem = registry.problem(name)  # it reads the folder
    encoders = problem.get_feature_encoders(str(tmp_path))
    for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL, DatasetSplit.TEST):
        rows = rows_of(problem, tmp_path, split)
        assert len(rows) == 60
    decode = encoders["inputs"].decode
    held = {tuple(decode(part) for part in parts_of(row["inputs"])): row["targets"] for row in rows}
    assert encoders["targets"].decode(held[tuple(first)]) == label and len(held) == 60
    assert problem.num_classes == 2 and encoders["targets"].vocab_size == 3


def popped(first, second, room):
    """BERT's own loop (google-research/bert, run_classifier.py)."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


@functools.cache
def cut(longest):
    """Returns the graph that cuts rows of any length."""
    row = tf.TensorSpec([None], tf.int64)
    return tf.function(functools.partial(cut_texts, longest=longest), input_signature=[row])


@pytest.mark.parametrize("longest", [4, 7, 8, 30])
@pytest.mark.parametrize("lengths", [(3, 9), (9, 3), (6, 6), (1, 1), (7, None), (2, None)])
def test_the_longer_text_of_a_pair_is_cut_first(lengths, longest):
    first, second = ([10 * side + i for i in range(2, 2 + (n or 0))] for side, n in enumerate(lengths, 1))
    if lengths[1] is None:
        row, expected = [*first, 1], [*first[: longest - 1], 1]
    else:
        row = [*first, 1, *second, 1]
        kept, rest = popped(first, second, longest - 2)
        expected = [*kept, 1, *rest, 1]
    assert cut(longest)(tf.constant(row, tf.int64)).numpy().tolist() == expected


def test_what_a_model_sees_is_cut_to_the_longest_row():
    example = {"inputs": tf.constant([*range(5, 25), 1], tf.int64), "targets": tf.constant([2], tf.int64)}
    hparams = registry.hparams("bert_tiny").parse("max_length=16")
    for mode in ("train", "eval", "infer"):
        found = registry.problem("classify_own").preprocess_example(example, mode, hparams)
        assert (found["inputs"].numpy().tolist(), found["targets"].numpy().tolist()) == ([*range(5, 20), 1], [2])


@pytest.mark.parametrize(
    ("num_labels", "lines", "is_warned"),
    [(60, 60, True), (31, 60, True), (30, 60, False), (2, 60, False), (10, 13, False), (11, 13, True)],
)
def test_labels_that_look_like_ids_are_warned_of(num_labels, lines, is_warned, tmp_path, caplog):
    train = "".join(f"{n % num_labels}\tthe number {n} is here\n" for n in range(lines))
    generated("classify_own", tmp_path, vocab_size=300, **files_of(tmp_path, train=train, dev=train))
    warning = f"train.tsv: {num_labels} different labels in {lines} lines, such as '0': these look like ids"
    assert (warning in caplog.text) == is_warned == ("look like ids" in caplog.text)


def test_classes_that_evaluations_cannot_see_are_warned_of(tmp_path, caplog):
    dev = "odd\tone\n"
    generated("classify_own", tmp_path, vocab_size=300, **files_of(tmp_path, train=SINGLE, dev=dev))
    assert f"{tmp_path}/dev.tsv: evaluations cannot measure labels without an example: 'even'." in caplog.text
    (many := tmp_path / "many").mkdir()
    train = "".join(f"x{n % 9}\tone\n" for n in range(18))
    with pytest.raises(UserError, match=r"'odd' occurs in no training .* one of 'x0', .*'x4' and 4 more\."):
        generated("classify_own", many, vocab_size=300, **files_of(many, train=train, dev=dev))
    assert "without an example: 'x0', 'x1', 'x2', 'x3', 'x4' and 4 more." in caplog.text


@pytest.mark.parametrize(
    ("labels", "alike"),
    [
        ("odd even", ""),
        ("Odd even odd", "'Odd', 'odd'"),
        ("caf\u00e9 even cafe\u0301", "'cafe\u0301', 'caf\u00e9'"),
    ],
)
def test_labels_that_look_alike_are_warned_of(labels, alike, tmp_path, caplog):
    labels = labels.split()
    train = "".join(f"{labels[n % len(labels)]}\tthe number {n} is here\n" for n in range(60))
    problem = generated("classify_own", tmp_path, vocab_size=300, **files_of(tmp_path, train=train, dev=train))
    assert problem.class_labels(str(tmp_path)) == sorted(labels)
    assert (
        (f"train.tsv: the labels {alike} differ only in" in caplog.text)
        == ("differ only" in caplog.text)
        == bool(alike)
    )


@pytest.mark.parametrize("name", ["regress_own", "regress_pair_own"])
def test_numbers_lie_between_the_lowest_and_the_highest_of_all_files(name, tmp_path):
    train = NUMBERS if name == "regress_pair_own" else NUMBERS.replace("\tor", " or")
    dev = train.replace("10.0\t", "12\t")
    generated(name, tmp_path, vocab_size=300, **files_of(tmp_path, train=train, dev=dev))
    problem = registry.problem(name)  # it reads the folder
    encoders = problem.get_feature_encoders(str(tmp_path))
    rows = rows_of(problem, tmp_path)
    assert len(rows) == 41 and (encoders["targets"].lowest, encoders["targets"].highest) == (0.0, 12.0)
    for row in rows:
        texts = [encoders["inputs"].decode(part) for part in parts_of(row["inputs"])]
        assert len(texts) == problem.num_texts
        expected = int(texts[0].split()[2]) / 4
        assert encoders["targets"].value((row["targets"][0] - 1) / 65535) == pytest.approx(expected, abs=1e-4)


def test_many_small_numbers_may_share_a_step_where_others_have_their_own(tmp_path):
    """60 of 360 numbers are far apart, and the others become one step: that is enough to learn."""
    numbers = [1000 * n for n in range(60)] + [n / 1000 for n in range(1, 301)]
    text = "".join(f"{number}\ta\n" for number in numbers)
    problem = configured("regress_own", **files_of(tmp_path, train=text, dev=text))
    problem.check_corpus("", "")
    assert problem.config["label_range"] == [0.0, 59_000.0]


def test_a_header_is_no_class(tmp_path):
    body = "".join(f"a text, {n}\t{n}\t{'odd' if n % 2 else 'even'}\n" for n in range(20))
    for header in ("text\tid\tlabel\n", "Kommentar\tNummer\tKlasse\n"):
        names = header.strip().split("\t")
        files = files_of(tmp_path, train=header + body, dev=header + body)
        folder = tmp_path / names[0]
        problem = generated("classify_own", folder, vocab_size=300, columns=[names[2], names[0]], **files)
        assert problem.class_labels(str(folder)) == ["even", "odd"]
        assert find_manifest(problem, str(folder))["splits"]["train"]["examples"] == 20
        with pytest.raises(UserError, match=r"columns = .*, but you requested columns = 3 and 1"):
            generated("classify_own", folder, vocab_size=300, columns=["3", "1"], header=True, **files)
        with pytest.raises(UserError, match=r"train\.tsv, line 1: .* looks like a header"):
            generated("classify_own", tmp_path / "other", vocab_size=300, columns=["3", "1"], **files)


def test_rare_labels_are_no_headers(tmp_path):
    text = "rare\tword\n" + SINGLE
    files = files_of(tmp_path, train=text, dev=text)
    problem = generated("classify_own", tmp_path / "d", vocab_size=300, header=False, **files)
    assert problem.class_labels(str(tmp_path / "d")) == ["even", "odd", "rare"]


@pytest.mark.parametrize(("name", "key"), [("regress_own", "label_range"), ("classify_own", "class_labels")])
def test_what_generation_has_not_found_yet_is_named(name, key, tmp_path):
    problem = registry.problem(name)
    (tmp_path / f"{name}.json").write_text(json.dumps({"problem": name, "vocab_size": 300, "files": {}, key: None}))
    problem.read_config(str(tmp_path))
    with pytest.raises(UserError, match=rf"{name}\.json: no {key} yet"):
        problem.determined(key)


@pytest.mark.parametrize(("name", "content"), [("classify_own", SINGLE), ("regress_pair_own", NUMBERS)])
def test_the_labels_of_finished_data_are_known_to_a_problem_that_asks_for_them_again(name, content, tmp_path):
    paths = files_of(tmp_path, train=content, dev=content)
    first, again = (generated(name, tmp_path / "d", vocab_size=300, **paths) for _ in range(2))
    assert again.config == first.config
    encoders = [problem.feature_encoders(str(tmp_path / "d"))["targets"] for problem in (first, again)]
    assert encoders[0].fingerprint == encoders[1].fingerprint


@pytest.mark.parametrize("name", ["classify_own", "regress_own"])
def test_labels_are_not_smoothed(name):
    hparams = registry.hparams("bert_tiny").of_model(registry.model("transformer_encoder"))
    problem = registry.problem(name)
    assert problem.model_hparams(hparams).head == registry.task_of(problem).head
    with pytest.raises(UserError, match=r"label_smoothing=0\.1.*--hparams=label_smoothing=0"):
        problem.model_hparams(hparams.parse("label_smoothing=0.1"))


@pytest.mark.parametrize(
    ("name", "hparams_set", "model", "expected"),
    [
        ("languagemodel_own", "bert_tiny", "transformer_encoder", "transformer_lm"),
        ("translate_own", "bert_tiny", "transformer_encoder", "transformer"),
        ("masked_lm_own", "lstm_lm_tiny", "lstm_lm", "transformer_encoder"),
    ],
)
def test_a_model_without_a_head_for_the_task_is_refused(name, hparams_set, model, expected):
    if model not in registry.list_models():
        pytest.skip("the model is an extra's")
    hparams = registry.hparams(hparams_set).of_model(registry.model(model))
    with pytest.raises(UserError, match=rf"^{name}: the model has no head for .*Expected --model={expected}\."):
        registry.problem(name).model_hparams(hparams)


@pytest.mark.parametrize(
    ("name", "good", "bad", "message", "count"),
    [
        ("classify_own", SINGLE, b"?\tthe number\n", r"line 121: the label '\?'", 1),
        ("regress_own", NUMBERS.replace("\tor", ""), b"7\n\xff\tx\nn/a\tx\n", "line 83: found 1 column", 3),
        (CHARACTERS, "text\n" * 20, b"b\xffd\nmore\xfe\n", "line 21: byte 0xff", 2),
    ],
)
def test_bad_lines_are_left_out(name, good, bad, message, count, tmp_path):
    size = {} if name == CHARACTERS else {"vocab_size": 300}
    problem = configured(name, **size, **files_of(tmp_path, train=good, dev=good.encode() + bad))
    with pytest.raises(UserError, match=message):
        problem.generate_data(str(tmp_path / "d"), str(tmp_path))
    problem.skip_bad_lines = True
    problem.generate_data(str(tmp_path / "d"), str(tmp_path))
    assert removed_of(problem, tmp_path / "d", "eval") == {"bad lines": count}
