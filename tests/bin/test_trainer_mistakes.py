"""What t2t-trainer refuses before it imports TensorFlow."""

# Nearest tests of: bin/trainer/training_flags.py, bin/trainer/training_modes.py

import json

import pytest

from tests.bin.conftest import CONFIG, REQUIRED


@pytest.mark.parametrize(
    ("argv", "words"),
    {
        "nothing": ([], ["--data_dir", "--output_dir", "--problem", "--hparams_set"]),
        "no folder of the run": (REQUIRED, ["missing --output_dir"]),
        "no set": (["--problem=p", "--data_dir=d", "--output_dir=nowhere"], ["missing --hparams_set"]),
        "unknown schedule": (["--schedule=trian"], ["--schedule=trian", "Nearest: train", "continuous_train_and_eval"]),
        "a decoder's schedule": (
            ["--schedule=decode", "--output_dir=run", "--decode_from_file=a.en"],
            ["--schedule=decode", "Type instead: t2t-decoder --output_dir=run --decode_from_file=a.en"],
        ),
        "a decoder's schedule that follows": (
            ["--schedule=continuous_decode_from_file", "--output_dir=run"],
            ["for c in run/model.ckpt-*.index; do t2t-decoder --checkpoint_path=${c%.index} --decode_from_file=FILE"],
        ),
        "parameter servers": (["--schedule=run_std_server"], ["--schedule=run_std_server", "t2t-make-tf-configs"]),
        "a decoder's flag with blanks": (
            ["--decode_from_file=my text", "--output_dir=my run"],
            ["Type instead: t2t-decoder --output_dir='my run' --decode_from_file='my text'"],
        ),
        "another command's schedule with blanks": (
            ["--schedule=decode", "--decode_from_file=my text", "--output_dir=my run"],
            ["Type instead: t2t-decoder --output_dir='my run' --decode_from_file='my text'"],
        ),
        "a decoder's flag": (["--decode_from_file=a.en"], ["Type instead: t2t-decoder", "--decode_from_file=a.en"]),
        "the test set while training": (["--eval_use_test_set"], ["cannot be used with training, only with"]),
        "early stopping": (["--eval_early_stopping_steps=0"], ["--eval_early_stopping_steps=0", "from 1 to"]),
        "early stopping without evaluations": (
            [*REQUIRED, "--output_dir=d", "--schedule=train", "--eval_early_stopping_steps=5"],
            ["--eval_early_stopping_steps: ", "--schedule=train "],
        ),
        "no data": ([*REQUIRED, "--output_dir=nowhere"], ["d/algorithmic_identity_decimal40-train", "t2t-datagen"]),
        "no run to begin with": (
            [*REQUIRED, "--output_dir=nowhere", "--warm_start_from=gone"],
            ["gone: no such folder or checkpoint"],
        ),
        "another problem than the run's": (
            [*REQUIRED, "--output_dir=RUN"],
            ["algorithmic_reverse_decimal40", "algorithmic_identity_decimal40"],
        ),
        "a value that is missing": ([*REQUIRED, "--output_dir=d", "--hp_num_heads"], ["num_heads"]),
        "no such flag": (["--problems=x"], ["--problems", "--problem"]),
        "steps": (["--train_steps=-1"], ["--train_steps=-1", "from 0 to"]),
    }.values(),
)
def test_mistakes_are_one_line(call, argv, words, tmp_path):
    """RUN is the folder of a run."""
    (tmp_path / "hparams.json").write_text(json.dumps(CONFIG | {"plan": {"train_steps": 3}}))
    status, out, err = call(*(word.replace("=RUN", f"={tmp_path}") for word in argv))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--problem=translate_ende_wmt_character"], ["translate_ende_wmt_characters"]),
        (["--model=transformr"], ["'transformr'", "Nearest: transformer"]),
        (["--hparams_set=transformer_tyni"], ["Nearest: transformer_tiny"]),
        (["--hparams=num_head=2"], ["'num_head'", "Nearest: num_heads"]),
        (["--hparams=num_heads=two"], ["num_heads=two", "expected a whole number"]),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(call, recorded, tmp_path, argv, words):
    given = [word for word in REQUIRED if word.split("=")[0] != argv[0].split("=")[0]]
    status, out, err = call(*given, f"--output_dir={tmp_path / 'run'}", *argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
    assert not (tmp_path / "run").exists()
