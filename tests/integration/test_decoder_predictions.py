"""t2t-decoder with encoders, against Predictor."""
# Nearest tests of: t2t_lite/decoding/command/features.py, t2t_lite/decoding/command/lines.py

import json

import numpy as np
import pytest

from t2t_lite.decoding.command.job import DecodingJob
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.tasks.classification import Prediction, Value
from tests.decoding.runs import SENTENCES, TEXT, make_encoder_run
from tests.integration.conftest import replaced
from tests.registered import registered

TAGS = ["A" if len(word) > 3 else "B" for word in TEXT.split()]
CONTEXT = "  ".join(SENTENCES[:9]) + " "  # is read in several windows


ANSWER = {"text": "house", "answer_start": CONTEXT.index("house")}


def squad(questions, answers=(ANSWER,)):
    """Questions, {id: text}, on CONTEXT in SQuAD's format."""
    asked = [{"id": name, "question": text, "answers": list(answers)} for name, text in questions.items()]
    return json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": asked}]}]})


def labelled(labels, columns=1):
    """Lines of a label and of so many sentences."""
    texts = ["\t".join(SENTENCES[at - i] for i in range(columns)) for at in range(len(SENTENCES))]
    return "\n".join(f"{labels[at % len(labels)]}\t{text}" for at, text in enumerate(texts))


# Of each problem: its data, and lines, one of them blank.
TEXTS = {
    "classify_own": labelled(["cold", "cold", "warm"]),
    "classify_pair_own": labelled(["cold", "cold", "warm"], 2),
    "regress_pair_own": labelled([1, -3.5, 2], 2),
    "tag_own": "\n".join(f"{word}\t{tag}" for word, tag in zip(TEXT.split(), TAGS, strict=True)),
    "qa_own": squad({"1": "Which house?", "2": "Was it?"}),
    "masked_lm_own": "\n".join(SENTENCES),
}
SIZES = {"masked_lm_own": {"sequence_length": 24}, "qa_own": {"sequence_length": 24, "doc_stride": 6}}
PAIRS = ["the red house\told", "a tree\tgreen", "der\tdas Haus war neu", "", "new\ta", "old\told"]
LINES = {
    "classify_own": ["the red house", "", "a tree was new\u2028and old", "old", "der rote Haus", "green"],
    "classify_pair_own": PAIRS,
    "regress_pair_own": PAIRS,
    "tag_own": ["the red house", "", "a  tree", "old " * 40, "neu", "der rote"],
    "qa_own": ["Was it?\tthe red house", f"red?\t{CONTEXT}", "", "a\tb", "the\tgreen tree", "?\tHaus"],
    "masked_lm_own": ["the [MASK] house", "[MASK] was [MASK]", "", "a [MASK]", "[MASK]", "und [MASK] ist"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A function from a problem's name to its run, which is made once, and a Predictor."""
    made = {}

    def run(name):
        if name not in made:
            folder = make_encoder_run(tmp_path_factory.mktemp("run"), name, TEXTS[name], **SIZES.get(name, {}))
            made[name] = str(folder), Predictor.load(str(folder))
        return made[name]

    return run


@pytest.fixture(params=registered(TEXTS))
def name(request):
    return request.param


@pytest.fixture
def loaded(runs, monkeypatch):
    """Function of a problem's name: its command finds the model loaded, and what was traced before."""

    def load(name):
        predictor = runs(name)[1]
        monkeypatch.setattr(Predictor, "load", lambda *args, **options: predictor)

    return load


@pytest.fixture
def decode(call_command, runs, tmp_path):
    """Calls t2t-decoder with a problem's run, and a file of its lines unless another one is named."""

    def call(name, *flags):
        (tmp_path / "in").write_text("".join(f"{line}\n" for line in LINES[name]), encoding="utf-8")
        usual = f"--output_dir={runs(name)[0]}", "--decode_from_file=in"
        return call_command("t2t-decoder", *replaced(usual, *flags))

    return call


def shown(answer):
    """The line of what Predictor says."""
    match answer:
        case Prediction():
            return f"{answer.label}\t{answer.probabilities[answer.label]:.6f}"
        case Value():
            return f"{answer.value:.6g}"
        case _ if hasattr(answer, "tags"):
            return "".join(f"{word}\t{tag}\n" for word, tag in zip(answer.words, answer.tags, strict=True))
        case _ if hasattr(answer, "start"):
            return f"{answer.text}\t{answer.probability:.6f}"
    return [[(one.token, round(one.probability, 6)) for one in mask] for mask in answer]


def table(text):
    """(labels, probabilities) of lines of both; the last digit depends on the other lines of a batch."""
    rows = [line.split("\t") for line in text.splitlines() if line]
    return [row[0] for row in rows], [float(row[1]) for row in rows]


@pytest.mark.few("tag_own")
@pytest.mark.slow
def test_a_file_and_standard_input_give_what_predictor_says(decode, call_command, standard_input, runs, name, tmp_path):
    assert decode(name, "--decode_to_file=out").stderr.endswith("written: out\n")
    folder, predictor = runs(name)
    asked = [line for line in LINES[name] if line]
    if name == "masked_lm_own":
        found = predictor.fill_mask(asked)
    else:
        found = predictor.predict([tuple(line.split("\t")) if "\t" in line else line for line in asked])
    answers = iter(map(shown, found))
    expected = [next(answers) if line else "" for line in LINES[name]]
    assert len({str(line) for line in expected}) > 2, "random weights that say the same of everything show nothing"
    written = (tmp_path / "out").read_text(encoding="utf-8")
    if name == "masked_lm_own":
        rows = [json.loads(line)["masks"] if line else "" for line in written.split("\n")[:-1]]
        assert [[[(c["token"], c["probability"]) for c in mask] for mask in row] or "" for row in rows] == expected
    else:
        assert written == "".join(f"{line}\n" for line in expected)
    standard_input("".join(f"{line}\n" for line in LINES[name]).encode())
    assert call_command("t2t-decoder", f"--output_dir={folder}").stdout == written


@pytest.mark.slow
def test_columns_give_columns(decode, loaded, call_command, runs, tmp_path):
    conll = pytest.importorskip("t2t_lite.extras.tagging.conll")
    loaded("tag_own")
    lines = [line.split() for line in LINES["tag_own"] if line]
    (tmp_path / "in.conll").write_text("\n\n".join("\n".join(f"{word}\tX" for word in words) for words in lines))
    decode("tag_own", "--decode_from_file=in.conll", "--decode_to_file=out")
    predictor = runs("tag_own")[1]
    assert (tmp_path / "out").read_text() == "".join(shown(one) + "\n" for one in predictor.predict(lines))
    assert [one.words for one in conll.read_conll(str(tmp_path / "out"))] == lines
    scored = call_command("t2t-score", "--task=tagging", "--predictions=out", "--reference=in.conll", "--resamples=10")
    assert scored.status == 0, scored.stderr
    rows = ["\n".join(f"{n}\t{word}\t_\tX\tY" + 5 * "\t_" for n, word in enumerate(words, 1)) for words in lines]
    (tmp_path / "in.conllu").write_text("# text = x\n" + "\n\n".join(rows))
    decode("tag_own", "--decode_from_file=in.conllu", "--decode_to_file=out_u")
    assert (tmp_path / "out_u").read_bytes() == (tmp_path / "out").read_bytes()


@pytest.mark.slow
def test_squads_questions_give_its_official_predictions(decode, loaded, call_command, runs, tmp_path):
    """In shards too, each of which is an object of its own; questions need no answers."""
    pytest.importorskip("t2t_lite.extras.question_answering")
    loaded("qa_own")
    questions = {"one": "Which house?", 'a "quoted" id': "Was it\nnew?", "3": "?", "4": "der das"}
    (tmp_path / "in.json").write_text(squad(questions, answers=()))
    flags = ["qa_own", "--decode_from_file=in.json"]
    assert "4 of 4" in decode(*flags, "--decode_to_file=out").stderr
    found = runs("qa_own")[1].predict([(text, CONTEXT) for text in questions.values()])
    expected = {name: one.text for name, one in zip(questions, found, strict=True)}
    assert json.loads((tmp_path / "out").read_text()) == expected
    (tmp_path / "gold.json").write_text(squad(questions))
    flagged = "--predictions=out", "--reference=gold.json", "--resamples=10"
    assert call_command("t2t-score", "--task=spans", *flagged).status == 0
    for worker in (0, 1):
        decode(*flags, "--decode_to_file=part", "--decode_shards=2", f"--worker_id={worker}")
    parts = [json.loads((tmp_path / f"part00{worker}").read_text()) for worker in (0, 1)]
    assert parts[0] | parts[1] == expected and len(parts[0]) == 2
    written = decode(*flags, "--decode_to_file=-", "--n_best_format=json", "--decode_hparams=n_best=3").stdout
    rows = [json.loads(line) for line in written.split("\n")[:-1]]
    assert [row["id"] for row in rows] == [*questions] and {len(row["hypotheses"]) for row in rows} == {3}
    assert all(CONTEXT[one["start"] : one["end"]] == one["text"] for row in rows for one in row["hypotheses"])


@pytest.mark.slow
def test_a_command_that_was_stopped_goes_on_and_ends_in_the_same_bytes(decode, loaded, tmp_path, monkeypatch):
    loaded("classify_own")
    monkeypatch.setattr(DecodingJob, "chunk", 2)
    decode("classify_own", "--decode_to_file=whole")
    predict, calls = Predictor.predict, []

    def stopped(*args, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return predict(*args, **options)

    monkeypatch.setattr(Predictor, "predict", stopped)
    assert decode("classify_own", "--decode_to_file=out").status == 130
    result = decode("classify_own", "--decode_to_file=out")
    assert "resuming after 4 lines" in result.stderr and "6 of 6" in result.stderr
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes() and len(calls) == 4


@pytest.mark.slow
def test_devices_and_shards_share_the_lines(decode, loaded, tmp_path):
    assert "2 logical CPU replicas" in decode("classify_pair_own", "--logical_cpus=2", "--decode_to_file=two").stderr
    loaded("classify_pair_own")
    decode("classify_pair_own", "--decode_to_file=one")
    for number in (0, 1):
        decode("classify_pair_own", "--decode_shards=2", f"--worker_id={number}", "--decode_to_file=part")
    (tmp_path / "parts").write_text("".join((tmp_path / f"part00{number}").read_text() for number in (0, 1)))
    one, *others = (table((tmp_path / name).read_text()) for name in ("one", "two", "parts"))
    for labels, probabilities in others:
        assert labels == one[0] and probabilities == pytest.approx(one[1], abs=2e-6)


@pytest.mark.slow
def test_the_output_has_tensor2tensor_s_name(decode, loaded, tmp_path):
    loaded("classify_own")
    decode("classify_own")
    assert (tmp_path / "in.transformer_encoder.bert_tiny.classify_own.decodes").exists()


@pytest.mark.slow
def test_shards_of_one_file_of_questions_have_its_features(decode, loaded, runs, tmp_path):
    pytest.importorskip("t2t_lite.extras.question_answering")
    loaded("qa_own")
    questions = {"1": "Which house?", "2": "Was it new?", "3": "?"}
    (tmp_path / "in.json").write_text(squad(questions))
    expected = runs("qa_own")[1].features([(text, CONTEXT) for text in questions.values()])
    parts = []
    for number in (0, 1):
        flags = "--decode_from_file=in.json", "--features_file=x.npz", "--decode_shards=2", f"--worker_id={number}"
        assert decode("qa_own", *flags).status == 0
        with np.load(tmp_path / f"x.npz00{number}") as part:
            parts.append(part["features"])
    np.testing.assert_allclose(np.concatenate(parts), np.concatenate(expected), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", None])
def test_features_are_written_as_arrays(decode, loaded, runs, pooling, tmp_path):
    loaded("classify_own")
    flags = ["--features_file=x.npz", "--features_layers=0,2", "--features_join=concat"]
    result = decode("classify_own", *flags, *[f"--features_pooling={pooling}"] * bool(pooling))
    assert result.status == 0 and "6 of 6" in result.stderr, result.stderr
    options = {"layers": [0, 2], "join": "concat", "pooling": pooling}
    expected = runs("classify_own")[1].features(LINES["classify_own"], **options)
    with np.load(tmp_path / "x.npz") as found:
        assert found["features"].dtype == np.float32
        if pooling is None:
            assert found["lengths"].tolist() == [*map(len, expected)]
        joined = np.stack(expected) if pooling else np.concatenate(expected)
        np.testing.assert_allclose(found["features"], joined, atol=1e-5)


@pytest.mark.slow
def test_a_refused_line_is_no_empty_text(decode, loaded, tmp_path):
    """It has no label and no hidden states, which an empty text has."""
    loaded("classify_own")
    (tmp_path / "bytes").write_bytes(b"the red house\n\xff\n\n")
    flags = ["--decode_from_file=bytes", "--on_error=skip"]
    result = decode("classify_own", *flags, "--n_best_format=json", "--decode_to_file=-")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert rows[0]["label"] and rows[1:] == [
        {"line": 2, "input": None, "skipped": True}, {"line": 3, "input": "", "skipped": True},
    ]  # fmt: skip
    assert "1 line skipped" in decode("classify_own", *flags, "--features_file=x.npz", "--features_pooling=mean").stderr
    with np.load(tmp_path / "x.npz") as found:
        assert np.isnan(found["features"]).all(1).tolist() == [False, True, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, line, words",
    [
        ("classify_pair_own", "a\tb\tc", ["in, line 7: 3 columns", "Expected 2"]),
        ("masked_lm_own", "the house", ["in, line 7: ", "[MASK]"]),
        ("masked_lm_own", "the house " * 20 + "[MASK]", ["in, line 7: ", " 62 ids", " 24"]),
    ],
)
def test_a_line_that_cannot_be_read(decode, loaded, assert_user_error, name, line, words, monkeypatch, tmp_path):
    loaded(name)
    monkeypatch.setitem(LINES, name, [*LINES[name], line, LINES[name][0]])
    assert_user_error(decode(name, "--decode_to_file=out"), *words, "--on_error=skip")
    result = decode(name, "--decode_to_file=out", "--on_error=skip")
    assert "1 line skipped" in result.stderr
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[6] == "" and lines[7].replace('"line": 8', '"line": 1') == lines[0]


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--long_input=split"], ["--long_input=split", "truncate, refuse"]),
        (["--features_pooling=mean"], ["--features_pooling cannot be used with"]),
        (["--features_file=x", "--decode_to_file=y"], ["--decode_to_file cannot be used with --features_file"]),
        (["--features_file=x", "--features_layers=4"], ["layers=(4,)", "from 0 to 2"]),
        (["--features_file=x", "--features_layers=all"], ["join=None", "sum or concat"]),
    ],
)
def test_mistakes(decode, assert_user_error, flags, words, tmp_path):
    (tmp_path / "in").write_text("")
    assert_user_error(decode("classify_own", *flags), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.slow
def test_what_is_typed_is_answered(call_command, loaded, standard_input, runs):
    loaded("classify_own")
    folder, predictor = runs("classify_own")
    standard_input(b"the red house\nns=2\n\nq\n")
    result = call_command("t2t-decoder", f"--output_dir={folder}", "--decode_interactive")
    predictions = [predictor.predict([text])[0] for text in ("the red house", "ns=2")]  # one by one, as they are typed
    expected = [f"{one.label}\t{one.probabilities[one.label]:.6f}" for one in predictions]
    assert result.stdout.split("\n") == [*expected, "", ""]
