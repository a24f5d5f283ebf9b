"""What t2t-trainer refuses before it imports TensorFlow."""

# Nearest tests of: bin/trainer/training_flags.py, bin/trainer/training_modes.py

import pytest

from tests.bin.conftest import REQUIRED


@pytest.mark.parametrize(
    ("argv", "words"),
    {
        "nothing": ([], ["--data_dir", "--output_dir", "--problem", "--hparams_set"]),
        "no folder of the run": (REQUIRED, ["missing --output_dir"]),
        "no set": (["--problem=p", "--data_dir=d", "--output_dir=nowhere"], ["missing --hparams_set"]),
        "a decoder's schedule that follows": (
            ["--schedule=continuous_decode_from_file", "--output_dir=run"],
            ["for c in run/model.ckpt-*.index; do t2t-decoder --checkpoint_path=${c%.index} --decode_from_file=FILE"],
        ),
        "parameter servers": (["--schedule=run_std_server"], ["--schedule=run_std_server", "t2t-make-tf-configs"]),
        "a decoder's flag with blanks": (
            ["--decode_from_file=my text", "--output_dir=my run"],
            ["Type instead: t2t-decoder --output_dir='my run' --decode_from_file='my text'"],
        ),
        "a decoder's schedule with blanks": (
            ["--schedule=decode", "--decode_from_file=my text", "--output_dir=my run"],
            ["Type instead: t2t-decoder --output_dir='my run' --decode_from_file='my text'"],
        ),
        "the test set while training": (["--eval_use_test_set"], ["cannot be used with training, only with"]),
        "early stopping without evaluations": (
            [*REQUIRED, "--output_dir=d", "--schedule=train", "--eval_early_stopping_steps=5"],
            ["--eval_early_stopping_steps: ", "--schedule=train "],
        ),
    }.values(),
)
def test_mistakes_are_one_line(call, argv, words):
    """The others are in benchmarks/harness/mistakes.tsv, which test_mistakes.py tries."""
    status, out, err = call(*argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
