"""A parser from brackets to its score: t2t-datagen, t2t-trainer, t2t-decoder, t2t-exporter, t2t-evalb."""

import re

import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from t2t_lite.extras.parsing.trees import parse_tree


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
    scored = call_command("t2t-evalb", "--gold=dev.mrg", "--predicted=p.txt").stdout
    assert float(re.search(r"FMeasure += +([\d.]+)", scored)[1]) > 90

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
