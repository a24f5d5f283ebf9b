"""A task of a `--t2t_usr_dir`: every command, `t2t_lite.load` and the page know it, and nothing else was told."""

import json
import pathlib

import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite.bin import t2t_score
from t2t_lite.registry import import_usr_dir
from tests.examples import commands
from tests.examples.commands import EXAMPLES, run
from tests.training.runs import assert_same, killed_after, log, state

pytestmark = [pytest.mark.slow, pytest.mark.long]  # it trains

FOLDER = EXAMPLES / "star_reviews"
REVIEWS = {"the film was great": 4, "so dull so bad": 1, "great lovely fine": 5, "the film was so": 3}


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """The flags of all commands, after t2t-datagen."""
    data = tmp_path_factory.mktemp("data")
    common = (f"--t2t_usr_dir={FOLDER}", "--problem=star_reviews", f"--data_dir={data}")
    assert run("t2t_datagen", *common, f"--tmp_dir={data}") == 0
    return common


_TINY = (
    "--hparams=hidden_size=32,filter_size=64,batch_size=256,learning_rate_constant=0.1,learning_rate_warmup_steps=100"
)


def train(flags, *arguments, **options):
    return commands.train((*flags, _TINY), *arguments, model="transformer", hparams_set="transformer_tiny", **options)


@pytest.fixture(scope="module")
def trained(flags, tmp_path_factory):
    """A run that has learned the task."""
    return train(flags, tmp_path_factory.mktemp("whole"), 120, "--best_checkpoint_metric=within_one_star", every=60)


def test_it_is_short():
    assert len((FOLDER / "__init__.py").read_text().splitlines()) < 150


def test_resumed_on_eight_replicas_it_is_bit_for_bit_the_run_in_one(flags, tmp_path):
    whole = train(flags, tmp_path / "whole", 8, "--logical_cpus=8")
    killed_after(whole, 4, tmp_path / "killed")
    train(flags, tmp_path / "killed", 8, "--logical_cpus=8", "--schedule=train")
    assert_same(state(tmp_path / "killed", 8), state(whole, 8))


def test_it_learns_is_evaluated_and_answers(flags, trained):
    learned = [line["within_one_star"] for line in log(trained, "evaluation", documented=False)]
    assert max(learned) > 0.9
    assert run("t2t_eval", *flags, f"--output_dir={trained}", "--eval_timeout_mins=0") == 0
    import_usr_dir(str(FOLDER))
    for review, stars in zip(t2t_lite.load(trained).predict([*REVIEWS]), REVIEWS.values(), strict=True):
        assert review.stars == pytest.approx(stars, abs=1) and not review.truncated


@pytest.fixture(scope="module")
def decoded(trained, tmp_path_factory):
    """The file of answers of t2t-decoder, one blank line among them."""
    folder = tmp_path_factory.mktemp("decoded")
    (folder / "texts").write_text("".join(f"{text}\n" for text in (*REVIEWS, "")))
    where = f"--decode_from_file={folder / 'texts'}", f"--decode_to_file={folder / 'stars'}"
    assert run("t2t_decoder", f"--output_dir={trained}", *where) == 0
    return folder / "stars"


def test_a_file_is_decoded_and_scored(trained, decoded, tmp_path, capsys):
    import_usr_dir(str(FOLDER))
    expected = [f"{review.stars:.2f}" for review in t2t_lite.load(trained).predict([*REVIEWS])]
    assert decoded.read_text().splitlines() == [*expected, ""]
    (tmp_path / "labelled").write_text("".join(f"{stars}\t{text}\n" for text, stars in REVIEWS.items()) + "\n")
    files = f"--predictions={decoded}", f"--reference={tmp_path / 'labelled'}"
    capsys.readouterr()
    assert t2t_score.main([f"--t2t_usr_dir={FOLDER}", "--task=stars", *files, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["answers"] == len(REVIEWS) and report["metrics"]["within_one_star"]["score"] == 1


def test_it_is_exported_and_served(trained, tmp_path):
    assert run("t2t_exporter", f"--output_dir={trained}", f"--export_dir={tmp_path / 'export'}") == 0
    exported = str(tmp_path / "export" / "1")
    expected = [review.stars for review in t2t_lite.load(exported).predict([*REVIEWS])]
    found = tf.saved_model.load(exported).signatures["predict"](inputs=tf.constant([*REVIEWS]))
    assert found["stars"].numpy().tolist() == pytest.approx(expected, abs=1e-5)
    card = pathlib.Path(exported, "README.md")
    assert not card.exists() or "`stars` float32 [batch]" in card.read_text()  # of an extra
    pytest.importorskip("t2t_lite.extras.serving")
    pytest.importorskip("t2t_lite.extras.query_client")
    from tests.extras.serving.serving_double import ServingDouble

    with ServingDouble({"model": {1: exported}}) as double:
        queries = f"--server={double.grpc}", "--servable_name=model", f"--inputs_file={tmp_path / 'texts'}"
        (tmp_path / "texts").write_text("".join(f"{text}\n" for text in REVIEWS))
        assert run("t2t_query_server", *queries, f"--outputs_file={tmp_path / 'served'}") == 0
    lines = [json.loads(line) for line in (tmp_path / "served").read_text().splitlines()]
    assert [line["stars"] for line in lines] == pytest.approx(expected, abs=1e-5)


def test_the_page_shows_its_answers(trained):
    pytest.importorskip("t2t_lite.extras.insights")
    from t2t_lite.extras.insights.app import create_app
    from t2t_lite.extras.insights.models import Models

    client = create_app(Models.load([str(trained)])).test_client()
    found = client.post("/api/predict", json={"text": "the film was great"}).json
    assert found["answer"] == f"{found['stars']:.2f}" and found["lists"] == []
