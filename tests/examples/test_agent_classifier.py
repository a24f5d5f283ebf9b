"""The classifier of a `--t2t_usr_dir`: what the commands and `t2t_lite.load` make of it."""

import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite.registry import import_usr_dir
from tests.examples.commands import AGENT_CLASSIFIER as FOLDER
from tests.examples.commands import run, train
from tests.training.runs import assert_same, killed_after, log, state

pytestmark = pytest.mark.slow  # it trains


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """The flags of all commands, after t2t-datagen."""
    data = tmp_path_factory.mktemp("data")
    common = (f"--t2t_usr_dir={FOLDER}", "--problem=sentence_agent", f"--data_dir={data}")
    assert run("t2t_datagen", *common, f"--tmp_dir={data}") == 0
    return common


@pytest.fixture(scope="module")
def trained(flags, tmp_path_factory):
    """A run of eight steps on eight replicas."""
    return train(flags, tmp_path_factory.mktemp("whole"), 8, "--logical_cpus=8")


def test_it_is_short():
    assert len((FOLDER / "__init__.py").read_text().splitlines()) < 100


@pytest.mark.long
def test_resumed_on_eight_replicas_it_is_bit_for_bit_the_run_in_one(flags, trained, tmp_path):
    killed_after(trained, 4, tmp_path / "killed")
    train(flags, tmp_path / "killed", 8, "--logical_cpus=8", "--schedule=train")
    assert_same(state(tmp_path / "killed", 8), state(trained, 8))


@pytest.mark.long
def test_its_metrics_and_costs_are_evaluated(trained):
    for line in log(trained, "evaluation", documented=False):
        assert {"loss", "accuracy", "cost_targets", "matthews_correlation"} <= line.keys()
        assert 0 <= line["accuracy"] <= 1 and -1 <= line["matthews_correlation"] <= 1 and line["cost_targets"] > 0
    progress = log(trained, "progress", documented=False)[-1]
    parts = progress["loss"] + progress["cost_targets"]
    assert progress["objective"] == pytest.approx(parts, rel=0.3)  # the objective is smoothed


@pytest.mark.long
def test_it_learns_by_its_own_metric_and_answers(flags, tmp_path):
    train(flags, tmp_path, 300, "--best_checkpoint_metric=matthews_correlation", every=100)
    assert max(line["matthews_correlation"] for line in log(tmp_path, "evaluation", documented=False)) > 0.9
    import_usr_dir(str(FOLDER))
    predictor = t2t_lite.load(tmp_path / "best")
    found = predictor.predict(["the dog sees a girl", "the dog is seen by a girl", ""])
    assert [prediction.label for prediction in found[:2]] == ["animal", "person"]
    assert all(sum(p.probabilities.values()) == pytest.approx(1) for p in found)


@pytest.mark.long
def test_it_is_exported_and_opens_again(trained, tmp_path, capsys):
    flags = ("--decode_hparams=max_input_size=9",)
    assert run("t2t_exporter", f"--output_dir={trained}", f"--export_dir={tmp_path / 'export'}", *flags) == 0
    exported = str(tmp_path / "export" / "1")
    assert capsys.readouterr().out == f"{exported}\n"
    texts = ["the dog sees a girl", "the dog is seen by a girl"]
    expected = t2t_lite.load(trained).predict(texts)
    assert t2t_lite.load(exported).predict(texts) == expected
    found = tf.saved_model.load(exported).signatures["predict"](inputs=tf.constant(texts))
    assert [label.decode() for label in found["labels"].numpy()] == [prediction.label for prediction in expected]


@pytest.mark.long
@pytest.mark.parametrize(
    "given, words",
    [
        (
            ["--format=hugging_face"],
            ["cannot hold this model", "model=xlnet or transformer or transformer_lm or transformer_encoder"],
        ),
        (["--decode_hparams=beam_size=2"], ["--decode_hparams: beam_size", "max_input_size"]),
        (["--checkpoint_path={0}/model.ckpt-8,{0}/model.ckpt-8"], ["2 checkpoints", "Expected one"]),
    ],
)
def test_what_an_export_does_not_have(trained, tmp_path, capsys, given, words):
    where = [f"--output_dir={trained}", f"--export_dir={tmp_path / 'x'}"]
    assert run("t2t_exporter", *where, *(flag.format(trained) for flag in given)) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert all(word in error for word in words) and not (tmp_path / "x").exists()


@pytest.mark.long
def test_a_file_is_answered_line_by_line(trained, tmp_path):
    (tmp_path / "texts").write_text("one two\nthree\n")
    where = (f"--decode_from_file={tmp_path / 'texts'}", f"--decode_to_file={tmp_path / 'labels'}")
    assert run("t2t_decoder", f"--output_dir={trained}", *where) == 0
    answers = [line.split("\t") for line in (tmp_path / "labels").read_text().splitlines()]
    assert len(answers) == 2
    assert all(label in ("person", "animal") and 0 < float(probability) <= 1 for label, probability in answers)
