"""What t2t-trainer answers before it imports TensorFlow, and what it hands to the Trainer."""

import json

import pytest

from t2t_lite.bin import t2t_datagen, t2t_trainer
from t2t_lite.training import trainer as trainer_module


@pytest.fixture
def call(capsys):
    def call(*argv):
        status = t2t_trainer.main(argv)
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def recorded(monkeypatch):
    """Replaces the Trainer by one that notes its arguments and what was asked of it."""

    calls = []

    class Recorder:
        def __init__(self, **arguments):
            self.__dict__.update(arguments)
            calls.append(arguments)

        def train(self, train_steps):
            calls.append(("train", train_steps))

        def evaluate(self):
            calls.append("evaluate")
            return {"loss": 1.5, "bleu": 20.0}

    monkeypatch.setattr(trainer_module, "Trainer", Recorder)
    return calls


REQUIRED = ("--problem=algorithmic_identity_decimal40", "--hparams_set=transformer_tiny", "--data_dir=d")


@pytest.mark.parametrize(
    ("argv", "words"),
    {
        "nothing": ([], ["--data_dir", "--output_dir", "--problem", "--hparams_set"]),
        "no folder of the run": (REQUIRED, ["missing --output_dir"]),
        "no set": (["--problem=p", "--data_dir=d", "--output_dir=nowhere"], ["missing --hparams_set"]),
        "unknown schedule": (["--schedule=trian"], ["--schedule=trian", "Nearest: train", "continuous_train_and_eval"]),
        "planned schedule": (["--schedule=continuous_eval"], ["--schedule=continuous_eval", "not available"]),
        "early stopping": (["--eval_early_stopping_steps=10"], ["--eval_early_stopping_steps", "not available yet"]),
        "profile": (["--profile"], ["--profile", "not available yet"]),
        "no such flag": (["--problems=x"], ["--problems", "--problem"]),
        "a size without --describe": (
            [*REQUIRED, "--output_dir=d", "--vocab_size=9"],
            ["--vocab_size=9", "--describe"],
        ),
        "nothing to describe": (["--describe", "--output_dir=nowhere"], ["missing --hparams_set"]),
        "no vocabulary": (["--describe", "--vocab_size=0"], ["--vocab_size=0", "positive"]),
        "steps": (["--train_steps=-1"], ["--train_steps=-1", "non-negative"]),
    }.values(),
)
def test_mistakes_are_one_line(call, argv, words):
    status, out, err = call(*argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--problem=algorithmic_identity_decimal4"], ["algorithmic_identity_decimal40"]),
        (["--model=transformr"], ["'transformr'", "Nearest: transformer"]),
        (["--hparams_set=transformer_tyni"], ["Nearest: transformer_tiny"]),
        (["--hparams=num_head=2"], ["'num_head'", "Nearest: num_heads"]),
        (["--hparams=num_heads=two"], ["num_heads", "expected int"]),
    ],
)
@pytest.mark.parametrize("describe", [[], ["--describe"]], ids=["train", "describe"])
def test_unknown_names_are_answered_with_the_nearest(call, recorded, tmp_path, argv, words, describe):
    status, out, err = call(*REQUIRED, f"--output_dir={tmp_path / 'run'}", *argv, *describe)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
    assert not (tmp_path / "run").exists()


def test_flags_reach_the_trainer(call, recorded, tmp_path):
    status, _, err = call(
        *REQUIRED, f"--output_dir={tmp_path}", "--train-steps=7", "--local_eval_frequency=3", "--logical_cpus=2",
        "--keep_checkpoint_max=4", "--hparams=hidden_size=8,num_heads=2", "--random_seed=5", "--worker_gpu=0",
    )  # fmt: skip
    assert status == 0, err
    arguments, train = recorded
    assert train == ("train", 7)
    assert arguments["problem"] == "algorithmic_identity_decimal40"
    assert arguments["model"] == "transformer"
    assert arguments["hparams_set"] == "transformer_tiny"
    assert (arguments["hparams"].hidden_size, arguments["hparams"].num_heads) == (8, 2)
    assert arguments["hparams"].random_seed == 5
    assert arguments["hparams"].filter_size == 512
    assert (arguments["local_eval_frequency"], arguments["keep_checkpoint_max"]) == (3, 4)
    assert (arguments["logical_cpus"], arguments["worker_gpu"]) == (2, 0)
    assert arguments["evaluate_while_training"] is True
    assert "--train_steps=7\n" in arguments["flags_text"]
    assert "eval_steps" not in arguments["flags_text"]


def test_schedules(call, recorded, tmp_path):
    call(*REQUIRED, f"--output_dir={tmp_path}", "--schedule=train")
    assert recorded[0]["evaluate_while_training"] is False
    recorded.clear()
    status, out, _ = call(*REQUIRED, f"--output_dir={tmp_path}", "--schedule=evaluate")
    assert (status, recorded[1], out) == (0, "evaluate", "loss = 1.5000\nbleu = 20.0000\n")


CONFIG = {
    "format": 1,
    "problem": "algorithmic_reverse_decimal40",
    "model": "transformer",
    "hparams_set": "transformer_tiny",
    "vocab_size": 12,
    "target_vocab_size": None,
    "vocabulary_sha256": {},
    "usr_dir": "",
    "hparams": {"hidden_size": 24},
}


def test_an_earlier_run_remembers_its_settings(call, recorded, tmp_path):
    (tmp_path / "hparams.json").write_text(json.dumps(CONFIG))
    assert call("--data_dir=d", f"--output_dir={tmp_path}", "--train_steps=9")[0] == 0
    assert recorded[0]["problem"] == "algorithmic_reverse_decimal40"
    assert recorded[0]["hparams"] is None  # the Trainer takes those of the run
    recorded.clear()
    assert call("--data_dir=d", f"--output_dir={tmp_path}", "--hparams=num_heads=2")[0] == 0
    assert (recorded[0]["hparams"].hidden_size, recorded[0]["hparams"].num_heads) == (24, 2)


DESCRIBE = ("--describe", "--hparams_set=transformer_tiny")


def test_describe_needs_no_more_than_a_set(call):
    status, out, err = call(*DESCRIBE)
    assert (status, err) == (0, "")
    assert out.startswith("model transformer, set transformer_tiny, vocabulary 37,000 ids (assumed")
    assert "37000 x 128" in out
    attention, network, norm = 4 * 128**2, 2 * 128 * 512 + 512 + 128, 2 * 128
    encoder_layer, decoder_layer = attention + network + 2 * norm, 2 * attention + network + 3 * norm
    total = 37_000 * 128 + 2 * encoder_layer + 2 * decoder_layer + 2 * norm
    (line,) = [line for line in out.splitlines() if line.startswith("total")]
    assert line.split()[-1] == f"{total:,}"
    assert "250,000 steps" in out


def test_describe_takes_sizes_and_changes(call):
    status, out, err = call(
        *DESCRIBE, "--vocab_size=50", "--target_vocab_size=60", "--hparams=num_encoder_layers=3", "--train_steps=7",
        "--logical_cpus=2",
    )  # fmt: skip
    assert (status, err) == (0, "")
    for words in ("50 ids and 60 of the targets", "50 x 128", "60 x 128", "encoder_0 … encoder_2", "  7 steps"):
        assert words in out
    assert "8,192 source + 8,192 target tokens (2 replicas, accumulation 1)" in out


def test_describe_takes_the_vocabulary_of_the_data_where_there_is_one(call, tmp_path):
    of_data = ("--problem=algorithmic_identity_decimal40", f"--data_dir={tmp_path}")
    assert "12 ids" in call(*DESCRIBE, *of_data)[1].splitlines()[0]  # digits need no file
    assert "50 ids" in call(*DESCRIBE, *of_data, "--vocab_size=50")[1].splitlines()[0]
    no_vocabulary = ("--problem=translate_ende_phrasebook", f"--data_dir={tmp_path}")
    assert "37,000 ids (assumed" in call(*DESCRIBE, *no_vocabulary)[1].splitlines()[0]


def test_describe_reads_an_earlier_run(call, tmp_path):
    config = {**CONFIG, "hparams": {"hidden_size": 24, "filter_size": 48, "num_heads": 4}}
    (tmp_path / "hparams.json").write_text(json.dumps(config))
    status, out, err = call("--describe", f"--output_dir={tmp_path}")
    assert (status, err) == (0, "")
    assert out.startswith(f"model transformer, set transformer_tiny, vocabulary 12 ids ({tmp_path})")
    assert "12 x 24" in out
    assert list(tmp_path.iterdir()) == [tmp_path / "hparams.json"]  # nothing is written


def test_describe_refuses_hyperparameters_that_make_no_model(call):
    status, out, err = call(*DESCRIBE, "--hparams=num_heads=7")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "num_heads=7" in err


def test_the_users_folder_of_a_run_is_imported_again(call, recorded, tmp_path):
    (tmp_path / "my_registered_things").mkdir()
    (tmp_path / "my_registered_things/__init__.py").write_text("raise ValueError('imported')\n")
    config = {**CONFIG, "usr_dir": str(tmp_path / "my_registered_things")}
    (tmp_path / "hparams.json").write_text(json.dumps(config))
    status, _, err = call("--data_dir=d", f"--output_dir={tmp_path}")
    assert status == 2
    assert "my_registered_things/__init__.py, line 1: ValueError: imported" in err


def test_generate_data_runs_t2t_datagen_before_training(call, recorded, monkeypatch, tmp_path):
    monkeypatch.setattr(t2t_datagen, "main", lambda argv: recorded.append(argv) or 0)
    folders = f"--output_dir={tmp_path / 'run'}", "--tmp_dir=downloads", "--generate_data"
    assert call(*REQUIRED, *folders)[0] == 0
    assert recorded[1] == ["--problem=algorithmic_identity_decimal40", "--data_dir=d", "--tmp_dir=downloads"]
    assert recorded[2][0] == "train"


def test_nothing_is_trained_when_data_cannot_be_generated(call, recorded, monkeypatch, tmp_path):
    monkeypatch.setattr(t2t_datagen, "main", lambda argv: 2)
    assert call(*REQUIRED, f"--output_dir={tmp_path}", "--generate_data")[0] == 2
    assert len(recorded) == 1


def test_the_curves_of_a_run_as_a_picture(call, tmp_path):
    (tmp_path / "train.log").write_text(json.dumps({"event": "progress", "step": 1, "loss": 2.0}) + "\n")
    assert call(f"--summary={tmp_path}")[:2] == (0, f"{tmp_path}/curves.png\n")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    status, _, stderr = call(f"--summary={tmp_path}/nowhere")
    assert status == 2
    assert "train.log: no such file" in stderr
