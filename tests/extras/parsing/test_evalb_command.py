"""t2t-evalb, and a parser from brackets to its score: t2t-datagen, t2t-trainer, t2t-decoder, t2t-exporter."""

import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from t2t_lite.extras.parsing.trees import parse_tree

GOLD = (
    "( (S\n  (NP-SBJ (NNP Kim))\n  (VP (VBZ sleeps)) (. .)))\n(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (NNP Kim))))\n"
)
# First tree: S, NP, VP match. Second: S 0-4, NP 0-2, NP 3-4 match, VP 2-3 does not (gold: 2-4). 6 of 7 on both sides.
PREDICTED = (
    "(TOP (S (NP (NNP Kim)) (VP (VBZ sleeps)) (. .)))\n(TOP (S (NP (DT a) (NN cat)) (VP (VBZ sees)) (NP (NN Kim))))\n"
)


@pytest.fixture
def evalb(call_command, tmp_path):
    """Scores predicted trees (text or bytes) against gold ones."""

    def evalb(predicted, *flags, gold=GOLD):
        for name, text in (("gold.mrg", gold), ("p.txt", predicted)):
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return call_command("t2t-evalb", "--gold=gold.mrg", "--predicted=p.txt", *flags)

    return evalb


def figures(result):
    """Returns [{name: number}, {name: number}] of the two blocks."""
    blocks = result.stdout.strip().split("\n\n")
    return [{k.strip(): float(v) for k, v in (line.split("=") for line in b.splitlines()[1:])} for b in blocks]


def test_the_figures_of_two_trees(call_command, tmp_path):
    (tmp_path / "gold.mrg").write_text(GOLD)
    (tmp_path / "p.txt").write_text(PREDICTED)
    result = call_command("t2t-evalb", "--gold=gold.mrg", "--predicted", "p.txt")
    assert (result.status, result.stderr) == (0, "")
    assert result.stdout.startswith("-- All --\nNumber of sentence        =      2\n")
    total, short = figures(result)
    assert total == short
    assert total["Bracketing Recall"] == total["Bracketing Precision"] == total["Bracketing FMeasure"] == 85.71  # 6/7
    assert total["Complete match"] == 50
    assert total["Tagging accuracy"] == 83.33  # 5 of 6 words


def test_what_is_left_out_is_said(evalb):
    lines = PREDICTED.splitlines()
    for bad, name in (("", "Skip  sentence"), ("(S (NP", "Error sentence"), ("(S (NN a))", "Error sentence")):
        result = evalb(f"{lines[0]}\n{bad}\n")
        assert result.status == 0
        assert result.stderr.startswith("p.txt, sentence 2: ")
        total = figures(result)[0]
        assert (total[f"Number of {name}"], total["Number of Valid sentence"]) == (1, 1)
        assert total["Bracketing FMeasure"] == 100


def test_the_cutoff(evalb):
    total, short = figures(evalb(PREDICTED, "--cutoff=3"))
    assert (total["Number of sentence"], short["Number of sentence"]) == (2, 1)
    assert short["Bracketing FMeasure"] == 100


@pytest.mark.parametrize(
    ("predicted", "gold", "words"),
    [
        (PREDICTED.splitlines()[0], GOLD, ["2 trees", "1 line"]),
        (PREDICTED, GOLD + "(S (NN a)\n", ["gold.mrg, line 5", "not closed"]),
        ("", GOLD, ["p.txt", "empty"]),
    ],
)
def test_bad_files(evalb, assert_user_error, predicted, gold, words):
    assert_user_error(evalb(predicted, gold=gold), *words)


def test_missing_flags_and_files(call_command, assert_user_error, tmp_path):
    assert_user_error(call_command("t2t-evalb", "--gold=a"), "--predicted")
    assert_user_error(call_command("t2t-evalb", "--gold=a", "--predicted=b"), "a", "no such file")


def test_flags_of_own_files_go_where_they_mean_something(call_command, assert_user_error):
    command = ["t2t-datagen", "--data_dir=d"]
    own = call_command(*command, "--problem=parsing_english_own", "--languages=en,de")
    assert_user_error(own, "--languages", "parsing_english_own", "--train_files")
    wmt = call_command(*command, "--problem=translate_ende_wmt32k", "--vocab_size=400")
    assert_user_error(wmt, "--vocab_size", "translate_ende_wmt32k")
    assert_user_error(call_command(*command, "--problem=parsing_english_own"), "t2t-datagen", "--train_files")


@pytest.fixture(scope="module")
def treebank():
    """60 trees of one form."""
    nouns, verbs = ("cat", "dog", "bird"), ("sees", "likes")
    return [
        f"(TOP (S (NP (DT {d}) (NN {n})) (VP (VBZ {v}) (NP (NNP {k}))) (. .)))"
        for d in ("the", "a") for n in nouns for v in verbs for k in ("Kim", "Eve", "Ann", "Joe", "Max")
    ]  # fmt: skip


@pytest.mark.long
def test_from_brackets_to_a_score(call_command, treebank, tmp_path):
    """In 150 steps a model learns the one form of these trees: what it writes, repaired or not, is nearly right."""
    for name, part in (("train.mrg", treebank), ("dev.mrg", treebank[::10])):
        (tmp_path / name).write_text("\n".join(part) + "\n")
    files = ["--train_files=train.mrg", "--dev_files=dev.mrg", "--vocab_size=330"]
    result = call_command("t2t-datagen", "--problem=parsing_english_own", "--data_dir=data", *files)
    assert result.status == 0, result.stderr
    settings = (
        "num_hidden_layers=1,hidden_size=32,filter_size=64,num_heads=2,batch_size=1024,learning_rate_warmup_steps=100,"
        "learning_rate_constant=0.7,"
        "layer_prepostprocess_dropout=0,attention_dropout=0,relu_dropout=0,eval_decode_examples=4"
    )
    trained = call_command(
        "t2t-trainer", "--problem=parsing_english_own", "--data_dir=data", "--output_dir=run",
        "--hparams_set=transformer_tiny", f"--hparams={settings}", "--train_steps=150", "--local_eval_frequency=150",
    )  # fmt: skip
    assert trained.status == 0, trained.stderr
    assert "bracketing_f1" in trained.stderr

    sentences = [" ".join(parse_tree(tree).leaves()) for tree in treebank[::10]]
    (tmp_path / "in.txt").write_text("\n".join([*sentences, "", "one (two)"]) + "\n")
    found = call_command("t2t-decoder", "--output_dir=run", "--decode_from_file=in.txt")
    assert found.status == 0, found.stderr
    output = (tmp_path / "in.txt.transformer.transformer_tiny.parsing_english_own.beam21.alpha0.3.decodes").read_text()
    *trees, blank, other = output.splitlines()
    assert blank == ""
    assert parse_tree(other).leaves() == ["one", "-LRB-two-RRB-"]
    assert [" ".join(parse_tree(tree).leaves()) for tree in trees] == sentences
    (tmp_path / "p.txt").write_text("\n".join(trees) + "\n")
    assert figures(call_command("t2t-evalb", "--gold=dev.mrg", "--predicted=p.txt"))[0]["Bracketing FMeasure"] > 90

    # Options of the user's own come first; in Python the problem's defaults hold, too.
    flags = ["--decode_from_file=in.txt", "--decode_to_file=-", "--decode_hparams=beam_size=2"]
    assert len(call_command("t2t-decoder", "--output_dir=run", *flags).stdout.splitlines()) == len(sentences) + 2
    translator = Translator.load(str(tmp_path / "run"))
    assert [translation.text for translation in translator.translate(sentences)] == trees

    # An export holds no Python: it writes tokens.
    exported = call_command("t2t-exporter", "--output_dir=run", "--export_dir=export")
    assert exported.status == 0, exported.stderr
    serve = tf.saved_model.load(str(tmp_path / "export" / "1")).signatures["serving_default"]
    written = [text.decode().split() for text in serve(inputs=tf.constant(sentences))["outputs"].numpy()]
    assert [" ".join(tokens) for tokens in written] == [
        " ".join(translation.tokens) for translation in translator.translate(sentences)
    ]
