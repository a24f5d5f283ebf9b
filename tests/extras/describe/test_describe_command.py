"""What t2t-trainer --describe says, without data or a GPU."""

# Nearest tests of: extras/describe/in_t2t_trainer.py, extras/describe/description.py

import json
import types

import pytest

from t2t_lite.extras.describe.in_t2t_trainer import _planned_replicas
from tests.bin.conftest import CONFIG

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


def test_describe_takes_the_model_of_the_set(call):
    status, out, _ = call("--describe", "--hparams_set=bert_tiny")
    assert status == 0 and out.startswith("model transformer_encoder, set bert_tiny, ")


def test_describe_takes_sizes_and_changes(call):
    status, out, err = call(
        *DESCRIBE, "--vocab_size=50", "--target_vocab_size=60", "--hparams=num_encoder_layers=3", "--train_steps=7",
        "--logical_cpus=2",
    )  # fmt: skip
    assert (status, err) == (0, "")
    for words in ("50 ids and 60 target ids", "50 x 128", "60 x 128", "encoder_0 … encoder_2", "  7 steps"):
        assert words in out
    assert "8,192 source + 8,192 target tokens (2 replicas, accumulation 1)" in out


def test_the_batches_of_multistep_adam_are_counted(call):
    of_adam = "optimizer=multistep_adam,optimizer_multistep_accumulate_steps=8"
    outs = [call(*DESCRIBE, f"--hparams={changes}")[1] for changes in (of_adam, "gradient_accumulation_steps=8")]
    assert outs[0] == outs[1]
    assert "32,768 source + 32,768 target tokens (1 replica, accumulation 8)" in outs[0]


def test_describe_takes_the_vocabulary_of_the_data_where_there_is_one(call, tmp_path):
    of_data = ("--problem=algorithmic_identity_decimal40", f"--data_dir={tmp_path}")
    assert "12 ids" in call(*DESCRIBE, *of_data)[1].splitlines()[0]  # digits need no file
    assert "50 ids" in call(*DESCRIBE, *of_data, "--vocab_size=50")[1].splitlines()[0]
    for no_vocabulary in (["--problem=translate_ende_wmt32k"], []):
        assert "37,000 ids (assumed" in call(*DESCRIBE, *no_vocabulary, of_data[1])[1].splitlines()[0]


@pytest.mark.parametrize(
    ("flags", "length"),
    [
        ([], 2048),
        (["--problem=enwik8_l512"], 512),
        (["--problem=enwik8_l512", "--hparams=batch_size=50"], 50),
        (["--problem=languagemodel_own"], 2048),  # only its data folder tells the length
    ],
)
def test_describe_counts_the_rows_of_the_problem(call, flags, length):
    status, out, _ = call("--describe", "--hparams_set=transformer_lm_tiny", *flags)
    assert status == 0 and out.startswith("model transformer_lm, ")
    assert f"\nFLOPs of matrix products, rows of {length} tokens\n" in out


def test_describe_says_where_the_model_can_go_and_all_reasons_why_not(call, tmp_path):
    def answers(*flags):
        lines = call(*DESCRIBE, *flags)[1].partition("exports (t2t-exporter --format)\n")[2].splitlines()
        return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}

    assert answers() == {
        "saved_model": "yes",
        "ctranslate2": "yes",
        "hugging_face": "yes, Blenderbot, with a SentencePiece vocabulary",
    }
    of_data = ("--problem=algorithmic_identity_decimal40", f"--data_dir={tmp_path}")
    found = answers("--hparams=ffn_activation=swiglu,shared_embedding_and_softmax_weights=0", *of_data)
    assert found["saved_model"] == found["ctranslate2"] == "yes"
    for words in ("no: ", "activation=swiglu", "shared_embedding_and_softmax_weights", "SentencePiece"):
        assert words in found["hugging_face"]


def test_describe_reads_an_earlier_run(call, tmp_path):
    hparams = {"hidden_size": 24, "filter_size": 48, "num_heads": 4}
    config = {**CONFIG, "hparams": hparams, "plan": {"train_steps": 10}}
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


def test_describe_reckons_with_gpus_that_are_not_here(call):
    status, out, err = call(*DESCRIBE, "--worker_gpu=8")
    assert (status, err) == (0, "")
    assert "all-reduce of one step, 8 replicas" in out
    assert "largest batch_size" not in out
    assert "largest batch_size in 16 GB  " in call(*DESCRIBE, "--worker_gpu=8", "--gpu_memory=16")[1]


@pytest.mark.slow
def test_describe_draws_the_learning_rate_and_the_positions(call, tmp_path):
    for name in ("plot.png", "plot.svg"):
        status, out, err = call(*DESCRIBE, f"--plot={tmp_path / name}", "--train_steps=100")
        assert (status, err) == (0, "")
        assert out.endswith(f"plot: {tmp_path / name}\n")
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
    for wrong, words in (("plot.jpg", ".svg"), ("", "is a folder")):
        status, out, err = call(*DESCRIBE, f"--plot={tmp_path / wrong}")
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "--plot=" in err and words in err


@pytest.mark.parametrize(
    ("gpus", "cpus", "machines", "expected"), [(1, 0, 0, 1), (0, 0, 0, 1), (4, 0, 0, 4), (1, 3, 0, 3), (2, 0, 3, 6)]
)
def test_how_many_replicas_a_run_would_have(monkeypatch, gpus, cpus, machines, expected):
    workers = [f"a:{port}" for port in range(1, machines + 1)]
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"worker": workers}}) if workers else "")
    assert _planned_replicas(types.SimpleNamespace(worker_gpu=gpus, logical_cpus=cpus)) == expected
