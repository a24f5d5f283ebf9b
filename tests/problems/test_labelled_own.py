"""Numbers, tags and answers of the user's own files."""

import json

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit, Text2RealProblem, Text2TagProblem, VocabType
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.extras.question_answering.squad_files import read_squad
from t2t_lite.extras.question_answering.windows import windows
from t2t_lite.extras.tagging.conll import read_conll
from t2t_lite.extras.tagging.text_tag_problem import cut_words
from t2t_lite.text.vocabulary import ByteTextEncoder, TextEncoder
from tests.data.stored import read_examples
from tests.problems.test_classify_own import SINGLE, files_of, generated, parts_of

NUMBERS = "".join(f"{n / 4}\tthe number {n}\tor {n + 1}\n\n" for n in range(41))
TAGS = "-DOCSTART- -X- O\n\n" + "".join(f"The DT O\nunaffables NN B-X\n{n} CD O\n\n" for n in range(40))


def squad(*questions, context="Ada was born in London. She met Charles, who built engines, in 1833."):
    """The bytes of a file; a question is (id, text, [(start, text), …])."""
    qas = [
        {"id": i, "question": text, "answers": [{"text": a, "answer_start": at} for at, a in answers]}
        for i, text, answers in questions
    ]
    return json.dumps({"version": "1.1", "data": [{"title": "x", "paragraphs": [{"context": context, "qas": qas}]}]})


QUESTIONS = [
    (f"{n}", f"Where was she born, {n}?", [(3, " was"), (16, "London"), (16, "London."), (16, "London")])
    for n in range(30)
]


def rows_of(problem, folder, split=DatasetSplit.TRAIN):
    return list(read_examples(Records(problem, str(folder), split).paths))


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


def test_tags_stand_at_the_first_pieces_of_words(tmp_path):
    generated("tag_own", tmp_path, vocab_size=300, **files_of(tmp_path, train=TAGS, dev=TAGS.replace(" ", "\t")))
    problem = registry.problem("tag_own")
    encoders = problem.get_feature_encoders(str(tmp_path))
    assert encoders["targets"].class_labels == ["B-X", "O"]
    assert problem.eval_metrics() == ["token_accuracy", "entity_f1"]
    for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL):
        rows = rows_of(problem, tmp_path, split)
        assert len(rows) == 40
        for row in rows:
            assert row["inputs"][-1] == 1 and row["targets"][-1] == 0 and len(row["inputs"]) == len(row["targets"])
            pieces = encoders["inputs"].pieces(row["inputs"])
            starts = [piece.startswith("\u2581") for piece in pieces]
            assert [target > 0 for target in row["targets"]] == starts
            assert encoders["targets"].decode(row["targets"]) == "O B-X O"


def test_tags_that_are_no_entities_have_no_such_metric():
    problem = registry.problem("tag_own")
    assert problem.eval_metrics() == ["token_accuracy"]
    problem.remember({"tags": ["NN", "O"]})
    assert problem.eval_metrics() == ["token_accuracy"]


@pytest.mark.parametrize("old, new, odd", [("B-X", "U-X", ""), ("B-X", "B_X", "B_X"), ("NN", "NN", "")])
def test_tags_without_entity_f1_are_warned_of(old, new, odd, tmp_path, caplog):
    tags = TAGS.replace(old, new)
    problem = generated("tag_own", tmp_path, vocab_size=300, **files_of(tmp_path, train=tags, dev=tags))
    assert ("entity_f1" in problem.eval_metrics()) == (not odd) == ("will not have entity_f1" not in caplog.text)
    assert f"because of the tags '{odd}'." in caplog.text or not odd


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("regress_own", "label_range"),
        ("classify_own", "class_labels"),
        ("tag_own", "tags"),
        ("image_own", "image_size"),
    ],
)
def test_what_generation_has_not_found_yet_is_named(name, key, tmp_path):
    problem = registry.problem(name)
    config = {"problem": name, "vocab_size": 300, "files": {}, key: None}
    (tmp_path / f"{name}.json").write_text(json.dumps(config))
    problem.read_config(str(tmp_path))
    with pytest.raises(UserError, match=rf"{name}\.json: no {key} yet"):
        problem.determined(key)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (None, "label_range is None. Expected"),
        ((1,), r"label_range is \(1,\)\. Expected"),
        ((2, 1), "label_range: numbers from 2 to 1: expected two finite numbers"),
        (("a", "b"), "label_range: numbers from 'a' to 'b': expected"),
        ((0, 10**400), "label_range: numbers from 0 to a huge number: expected"),
    ],
)
def test_a_range_that_is_none_is_named(ends, message):
    class Numbers(Text2RealProblem):
        def label_range(self, data_dir):
            return ends

    with pytest.raises(UserError, match=message):
        Numbers().label_ids("data")
    with pytest.raises(UserError, match="Unset: write label_range") as caught:
        type("Unset", (Text2RealProblem,), {})().label_ids("data")
    assert isinstance(caught.value, NotImplementedError)


def test_a_column_may_hold_any_character_but_a_blank(tmp_path):
    path = tmp_path / "a.conll"
    path.write_bytes(
        "\ufeff10\u00a0000 N\r\n\u6771\u4eac\u200b \x07 N\r\n \t \r\n".encode() + b"x" * 100_000 + b"\tN\tO"
    )
    with pytest.raises(UserError, match=r"a\.conll, line 2: found 3 columns, one of them blank"):
        list(read_conll(str(path)))
    path.write_bytes(path.read_bytes().replace(b" \x07", b"").replace(b"\tN", b""))
    first, second = read_conll(str(path))
    assert first.words == ["10\u00a0000", "\u6771\u4eac\u200b"] and first.tags == ["N", "N"]
    assert second == (["x" * 100_000], ["O"], f"{path}, line 4")


def test_half_a_surrogate_pair_is_one_character(tmp_path):
    context = "Ada \ud83d \U0001f600 was born in London."
    answers = [(context.index(text), text) for text in ("London", "\ud83d \U0001f600 was")]
    (tmp_path / "a.json").write_text(squad(("\udc00", "Where \ud83d?", answers), context=context))
    [found] = read_squad(str(tmp_path / "a.json"))
    assert (found.id, found.question) == ("\ufffd", "Where \ufffd?")
    assert found.context == context.replace("\ud83d", "\ufffd")
    assert [found.context[start:end] for start, end in found.answers] == ["London", "\ufffd \U0001f600 was"]


def test_long_ids_of_questions_differ_at_their_end(tmp_path):
    long = [(f"{'long' * 30}{number}", "Where?", [(16, "London")]) for number in range(2)]
    (tmp_path / "a.json").write_text(squad(*long))
    assert [found.id for found in read_squad(str(tmp_path / "a.json"))] == [name for name, *_ in long]


def test_as_many_tags_as_words_are_expected(tmp_path):
    class Short(Text2TagProblem):
        name = "short"
        is_generate_per_split = True
        vocab_type = VocabType.CHARACTER

        def tags(self, data_dir):
            return ["A", "B"]

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": ["a", "b"], "targets": ["A"]}

    with pytest.raises(
        UserError, match=r"short: generate_samples gave 2 words with the tags \['A'\]. Expected as many"
    ):
        Short().generate_data(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize(
    "targets, longest, kept",
    [
        ([1, 0, 0, 2, 1, 0, 0], 7, 6),  # it fits
        ([1, 0, 0, 2, 1, 0, 0], 6, 4),  # the last word is cut off as a whole
        ([1, 0, 0, 2, 1, 0, 0], 5, 4),
        ([1, 0, 0, 2, 1, 0, 0], 4, 3),
        ([1, 0, 0, 2, 1, 0, 0], 3, 2),  # nothing but a part of the first word has room
        ([1, 0], 8, 1),
    ],
)
def test_sentences_are_cut_between_words(targets, longest, kept):
    inputs = [*range(5, 4 + len(targets)), 1]
    found = tf.function(cut_words)(tf.constant(inputs, tf.int64), tf.constant(targets, tf.int64), longest)
    assert [part.numpy().tolist() for part in found] == [[*inputs[:kept], 1], [*targets[:kept], 0]]


def test_answers_are_the_positions_of_their_pieces(tmp_path):
    arguments = files_of(tmp_path, train=squad(*QUESTIONS), dev=squad(*QUESTIONS[:3]))
    generated("qa_own", tmp_path, vocab_size=310, sequence_length=80, doc_stride=20, **arguments)
    problem = registry.problem("qa_own")
    encoders = problem.get_feature_encoders(str(tmp_path))
    assert problem.max_length(registry.hparams("bert_tiny").parse("max_length=9")) == 80, "no row is left out"
    assert (problem.sequence_length, problem.doc_stride, encoders["targets"].vocab_size) == (80, 20, 81)
    rows = rows_of(problem, tmp_path)
    assert len(rows) >= 30 and max(len(row["inputs"]) for row in rows) <= 80
    for row in rows:
        first, last = row["targets"]
        assert encoders["inputs"].decode(row["inputs"][first - 1 : last]) == "London"  # the commonest of the answers
    assert rows_of(problem, tmp_path, DatasetSplit.EVAL)


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 40])
def test_windows_hold_the_whole_context_and_every_answer(length):
    context = "".join(chr(97 + n % 26) for n in range(length))
    found = windows(ByteTextEncoder(), "Q?", context, longest=14, stride=4)
    assert [window.ids[: window.before] for window in found] == [[*ByteTextEncoder().encode("Q?"), 1]] * len(found)
    assert all(len(window.ids) <= 14 and window.ids[-1] == 1 for window in found)
    assert {at for window in found for at, _ in window.spans} == set(range(length))
    assert len(found) == 1 + max(0, -(-(length - 10) // 4))
    for start in range(length):
        for end in range(start + 1, min(start + 6, length) + 1):
            places = [(window, at) for window in found if (at := window.at(start, end))]
            assert places
            for window, (first, last) in places:
                ids = window.ids[first - 1 : last]
                assert ByteTextEncoder().decode(ids) == context[start:end]
                assert window.spans[first - 1 - window.before][0] == start


def test_blanks_around_a_context_may_belong_to_an_answer():
    """No piece stands for them."""
    (window,) = windows(TextEncoder(50), "3", " 40 41 ", longest=14, stride=4)
    assert window.ids == [5, 1, 42, 43, 1] and window.at(0, 7) == window.at(1, 6) == (3, 4)


def test_answers_longer_than_a_window_are_counted(tmp_path):
    context = "Ada was born in London. She met Charles, who built engines, in 1833."
    asked = [*QUESTIONS, ("long", "What?", [(0, context)])]
    arguments = files_of(tmp_path, train=squad(*asked), dev=squad(*asked))
    problem = generated("qa_own", tmp_path, vocab_size=310, sequence_length=30, **arguments)
    removed = find_manifest(problem, str(tmp_path))["splits"]["train"]["removed"]
    assert removed == {"answers that no window holds": 1}


def test_a_question_that_leaves_no_room_is_refused():
    with pytest.raises(UserError, match=r"'Why so\?': its 8 ids leave no room for a context in 9"):
        windows(ByteTextEncoder(), "Why so?", "because", longest=9, stride=2)


@pytest.mark.parametrize("name", ["classify_own", "tag_own", "regress_own", "qa_own"])
def test_labels_are_not_smoothed(name):
    hparams = registry.hparams("bert_tiny").of_model(registry.model("transformer_encoder"))
    assert "head" in registry.problem(name).model_hparams(hparams)
    with pytest.raises(UserError, match=r"label_smoothing=0\.1.*Expected --hparams=label_smoothing=0"):
        registry.problem(name).model_hparams(hparams.parse("label_smoothing=0.1"))


TREES = "".join(f"(S (NP (DT the{n}) (NN cat{n * n})) (VP (VBZ sleeps{n % 7})))\n" for n in range(60))


def removed_of(problem, folder, split="train"):
    return find_manifest(problem, str(folder))["splits"][split]["removed"]


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


def test_bad_lines_of_every_kind_are_left_out(tmp_path):
    def write(name, data):
        (tmp_path / name).write_bytes(data)
        return [str(tmp_path / name)]

    questions = [(n, f"Where was she born, {n}?", [(16, "London")]) for n in range(30)]
    wrong = squad(*questions, (99, "Which year?", [(0, "1833")])).encode()
    cases = {
        "regress_own": NUMBERS.replace("\tor", "").encode() + b"7\n\xff\tx\n",
        "tag_own": TAGS.encode() + b"b\xf6d O\n\none\nword X\n",
        "qa_own": wrong,
        "parsing_english_own": TREES.encode() + b"(S (NN b\xff))\n(S (NP word x))\n",
        "languagemodel_own_characters": b"text\n" * 20 + b"b\xffd\nmore\xfe\n",
    }
    counts = {"regress_own": 2, "tag_own": 2, "qa_own": 1, "parsing_english_own": 2, "languagemodel_own_characters": 2}
    for name, data in cases.items():
        path = write(f"{name}.txt", data)
        problem, folder = registry.problem(name), tmp_path / name
        size = {} if name == "languagemodel_own_characters" else {"vocab_size": 300}
        problem.configure(train_files=path, dev_files=path, **size)
        with pytest.raises(UserError):
            problem.generate_data(str(folder), str(tmp_path))
        problem.skip_bad_lines = True
        problem.generate_data(str(folder), str(tmp_path))
        assert removed_of(problem, folder) == {"bad lines": counts[name]}, name


def test_squad_2_and_whole_numbers_as_ids(tmp_path):
    text = json.loads(squad(*[(n, f"Where, {n}?", [(16, "London")]) for n in range(30)]))
    for entry in text["data"][0]["paragraphs"][0]["qas"][:7]:
        entry.update(is_impossible=True, answers=[], plausible_answers=[{"text": "1833", "answer_start": 0}])
    (tmp_path / "a.json").write_text(json.dumps(text))
    found = list(read_squad(str(tmp_path / "a.json")))
    assert [question.id for question in found] == [f"{n}" for n in range(30)]
    assert [len(question.answers) for question in found] == [0] * 7 + [1] * 23
    files = {f"{split}_files": [str(tmp_path / "a.json")] for split in ("train", "dev")}
    problem = generated("qa_own", tmp_path / "d", vocab_size=300, sequence_length=80, **files)
    assert removed_of(problem, tmp_path / "d") == {"questions without an answer": 7}
