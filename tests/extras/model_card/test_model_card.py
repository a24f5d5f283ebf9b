"""What the card of an export says, line by line, and that of a folder for another toolkit."""

# Nearest tests of: extras/model_card/in_t2t_exporter.py

import copy
import dataclasses
import json
import os
import shutil
import types

import pytest
import tensorflow as tf
import yaml

import t2t_lite
from t2t_lite.data.problem import TranslateProblem
from t2t_lite.decoding.translator import Translator
from t2t_lite.export.signatures import TextSignatures
from t2t_lite.extras.model_card.model_card import model_card, readme, toolkit_card
from t2t_lite.text.vocabulary import ByteTextEncoder, TextEncoder
from tests.decoding.runs import SENTENCES, make_encoder_run, make_run

OPTIONS = {"beam_size": 7, "alpha": 0.25, "extra_length": 9, "length_penalty": "power", "ends": "top"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), steps=(100, 200))


@pytest.fixture
def run(made, tmp_path):
    """A copy that may have logs."""
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture(scope="module")
def translator(made):
    return Translator.load(str(made))


def card(translator, folder=None, **more):
    """The card of a translator; of one whose checkpoint lies in another folder."""
    if folder:
        (run,) = translator.runs
        translator = copy.copy(translator)
        translator.runs = [dataclasses.replace(run, path=f"{folder}/model.ckpt-200")]
    options = {"path": "/exports/ours/3", "weights_dtype": "float32", **more}
    return model_card(translator, TextSignatures(translator, 33, **OPTIONS), **options)


def row(text, title):
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {title} |")]
    return line.removeprefix(f"| {title} | ").removesuffix(" |")


def test_a_card_names_the_model_its_settings_and_its_call(translator):
    text = card(translator, license="MIT | own\nwords", command="t2t-exporter --x")
    head = yaml.safe_load(text.split("---\n")[1])
    assert (head["license"], head["language"], head["library_name"]) == ("MIT / own words", ["en", "de"], "t2t_lite")
    assert "# translate_own, version 3\n" in text
    assert (row(text, "languages"), row(text, "license")) == ("en → de", "MIT / own words")
    search = (
        "beam 7, alpha 0.25 (power), ends top, at most the input's length + 9 pieces; inputs are truncated to 33 pieces"
    )
    assert row(text, "search") == search
    assert row(text, "model") == "transformer, set transformer_tiny, step 200 (`run/model.ckpt-200`)"
    assert row(text, "weights") == "float32, as trained"
    assert row(card(translator, weights_dtype="bfloat16"), "weights").startswith("bfloat16, half the size")
    for words in ("```bash\nt2t-exporter --x\n```", "[batch, 7], best first", "/ours:/models/translate", '"ours/3"'):
        assert words in text
    plain = card(translator)
    assert yaml.safe_load(plain.split("---\n")[1])["license"] == "unknown" and row(plain, "license") == "not stated"
    assert "Made by:" not in plain
    tools = (t2t_lite.__version__, tf.__version__)
    assert row(plain, "made by") == "t2t_lite {}, TensorFlow {}".format(*tools)
    assert row(plain, "vocabulary").startswith("SentencePieceEncoder, 330 entries, SHA-256 ")
    for words in (
        'docker run -p 127.0.0.1:8501:8501 -v "$PWD/ours:/models/translate:ro" -e MODEL_NAME=translate ',
        """curl -d '{"inputs": {"inputs": ["…"]}}' localhost:8501/v1/models/translate:predict""",
        'print(serve(inputs=tf.constant(["…"]))["outputs"])',
    ):
        assert words in plain


def test_a_vocabulary_a_side_and_several_inputs(translator):
    other = copy.copy(translator)
    other.encoders = {"inputs": ByteTextEncoder(), "targets": TextEncoder(50)}
    other.task = types.SimpleNamespace(
        inputs=("question", "context"), export_name="answer", output="answers", hub_task="x-y"
    )
    text = card(other)
    fingerprints = [other.encoders[side].fingerprint[:12] for side in ("inputs", "targets")]
    assert row(text, "vocabulary") == (
        "inputs: ByteTextEncoder, 258 entries, SHA-256 {}…; outputs: TextEncoder, 50 entries, SHA-256 {}…"
    ).format(*fingerprints)
    assert """curl -d '{"inputs": {"question": ["…"], "context": ["…"]}}' localhost:8501/v1/models/answer:""" in text
    assert 'serve(question=tf.constant(["…"]), context=tf.constant(["…"]))["answers"]' in text
    assert yaml.safe_load(text.split("---\n")[1])["tags"] == ["x-y", "t2t_lite"]
    other.problem, other.runs = None, []
    text = card(other)
    assert "language" not in yaml.safe_load(text.split("---\n")[1]) and "# a model, version 3\n" in text
    assert (row(text, "languages"), row(text, "BLEU")) == ("not stated", "not recorded")


@pytest.mark.parametrize("license", ["", "MIT", 'My own: "free" # for all', "no"])
def test_the_head_of_a_toolkits_card_is_yaml(translator, license):
    """Also for what YAML takes for something else: the language `no`, a licence with a colon."""
    translator = copy.copy(translator)
    translator.problem = types.SimpleNamespace(languages=("no", "de"))
    rows = {"class": "A|B"}
    text = readme(
        translator, title="My title", library="tools", rows=rows, body="Call it.", license=license, command="x"
    )
    _, head, body = text.split("---\n", 2)
    assert yaml.safe_load(head) == {
        "license": license or "unknown", "language": ["no", "de"], "library_name": "tools",
        "pipeline_tag": "translation", "tags": ["translation", "tools", "t2t_lite"],
    }  # fmt: skip
    assert "# My title\n" in body and body.endswith("## How to call it\n\nCall it.\n") and "```bash\nx\n```" in body
    assert row(body, "class") == r"A\|B" and row(body, "made by") == f"t2t_lite {t2t_lite.__version__}"


@pytest.mark.slow
def test_the_license_of_a_command_is_in_the_card(call_command, tmp_path):
    pytest.importorskip("t2t_lite.extras.hugging_face")
    marian = {"layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan", "norm_epsilon": 1e-5}
    made = make_run(tmp_path, **marian, position_layout="marian")
    result = call_command("t2t-exporter", f"--output_dir={made}", "--format=hugging_face", "--license=CC BY 4.0")
    assert result.stdout == f"{made}/hugging_face\n"
    card = (made / "hugging_face" / "README.md").read_text()
    assert "MarianMTModel" in card and "CC BY 4.0'\n```" in card, "of the command as well"
    assert yaml.safe_load(card.split("---")[1])["license"] == "CC BY 4.0"


def write_log(path, *lines):
    path.write_text("".join(json.dumps({"event": "evaluation"} | line) + "\n" for line in lines))


def test_the_bleu_is_that_of_just_this_model(translator, run, tmp_path):
    changed = int(os.stat(run / "model.ckpt-200.index").st_mtime)
    of_this = {"step": 200, "bleu": 20.5, "bleu_signature": "s"}
    write_log(
        run / "train.log", {"step": 200, "bleu": 2.0}, of_this, of_this | {"step": 300}, {"step": 200, "bleu": None}
    )
    test = {"step": 200, "bleu": 30.5, "split": "test", "checkpoint_time": changed, "bleu_signature": "t"}
    write_log(run / "eval.log", test, test | {"checkpoint_time": 1, "bleu": 9.0}, test | {"step": 300, "bleu": 8.0},
              test | {"split": "train", "bleu": 7.0})  # fmt: skip
    expected = "20.50 (s) on a sample of the dev set; 30.50 (t) on a sample of the test set"
    assert row(card(translator, run), "BLEU") == expected
    copied = shutil.copytree(run, run / "best")
    for name in ("train.log", "eval.log"):
        (copied / name).unlink()
    assert row(card(translator, copied), "BLEU") == "20.50 (s) on a sample of the dev set"
    averaged = shutil.copytree(copied, tmp_path / "avg")
    assert row(card(translator, averaged), "BLEU") == "not recorded"
    noted = {"event": "translation", "step": 200, "checkpoint_time": changed, "bleu": 12.0, "source": "my|dev.en"}
    write_log(averaged / "eval.log", noted, noted | {"checkpoint_time": 1, "bleu": 9.0})  # by t2t-translate-all
    assert row(card(translator, averaged), "BLEU") == "12.00 (sacreBLEU, cased, 13a) on my/dev.en"


def test_a_model_that_does_not_translate_has_the_metrics_of_its_evaluation(tmp_path):
    text = "".join(f"{'no' if at % 2 else 'yes'}\t{sentence}\n" for at, sentence in enumerate(SENTENCES))
    run = make_encoder_run(tmp_path / "labelled", "classify_own", text, header=False)
    of_this = {"step": 100, "loss": 0.612345, "accuracy": 0.75, "seconds": 3.0, "settings": {"eval_steps": 0}}
    write_log(run / "train.log", of_this | {"step": 50, "loss": 9.0}, of_this)
    changed = int(os.stat(run / "model.ckpt-100.index").st_mtime)
    test = {"step": 100, "loss": 1.5, "split": "test", "checkpoint_time": changed, "settings": {"eval_steps": 7}}
    write_log(run / "eval.log", test)
    shown = toolkit_card(t2t_lite.load(str(run)), title="t", library="l", rows={}, body="b")
    assert row(shown, "scores") == "loss 0.6123, accuracy 0.75 on the dev set; loss 1.5 on a sample of the test set"


def test_what_was_given_up_does_not_count(translator, run):
    first, resumed, again = {"step": 200, "bleu": 2.0}, {"event": "resume", "step": 150}, {"step": 200, "bleu": 3.0}
    write_log(run / "train.log", first, resumed)
    assert row(card(translator, run), "BLEU") == "not recorded"
    write_log(run / "train.log", first, resumed, again)
    assert row(card(translator, run), "BLEU").startswith("3.00 (sacreBLEU, cased, 13a)")


def test_an_ensemble_names_its_models_and_no_bleu(run, translator):
    write_log(run / "train.log", {"step": 100, "bleu": 20.5}, {"step": 200, "bleu": 20.5})
    text = card(Translator.load([f"{run}/model.ckpt-100", f"{run}/model.ckpt-200"]))
    assert "step 100" in row(text, "model 1") and "step 200" in row(text, "model 2")
    assert row(text, "BLEU") == "not recorded"
    one, both = (int(row(t, "parameters").split()[0].replace(",", "")) for t in (card(translator), text))
    assert both == 2 * one and "2 models of an ensemble" in row(text, "parameters")


class Chooses(TranslateProblem):
    language_pair = ("en", "de")
    chooses_output = True


class Writes(TranslateProblem):
    def output_text(self, inputs, outputs, encoders):
        return outputs


@pytest.mark.parametrize(
    "problem, has_own", [(Chooses(), True), (Writes(), True), (TranslateProblem(), False), (None, False)]
)
def test_what_the_graph_cannot_do_is_said(translator, problem, has_own):
    translator = copy.copy(translator)
    translator.problem = problem
    assert ("not in the graph" in card(translator)) == has_own
