"""What a search refuses before TensorFlow is imported."""

import pytest

from tests.bin.conftest import REQUIRED

SEARCH = [*REQUIRED, "--output_dir=d", "--hparams_range=x"]
MISTAKES = {
    "a search's flag without a search": (["--autotune_max_trials=3"], ["--autotune_max_trials", "only with --hp"]),
    "seeds": ([*SEARCH, "--random_seeds=1,2"], ["--random_seeds cannot be used with", "--autotune_seeds=N"]),
    "no evaluations": ([*SEARCH, "--schedule=train"], ["--hparams_range=x", "--schedule=train"]),
    "a bucket": ([*REQUIRED, "--hparams_range=x", "--output_dir=gs://b/s"], ["--output_dir=gs://b/s", "local folder"]),
    "an export": ([*SEARCH, "--export_saved_model"], ["t2t-exporter"]),
    "other hyperparameters": ([*SEARCH, "--allow_hparams_change"], ["--allow_hparams_change", "--hparams_range"]),
    "a spread over one seed": (["--autotune_seeds=1"], ["--autotune_seeds=1", "from 2 to 1,000, or 0"]),
    "no trial": ([*SEARCH, "--autotune_max_trials=0"], ["--autotune_max_trials=0"]),
    "no process": ([*SEARCH, "--autotune_parallel_trials=0"], ["--autotune_parallel_trials=0", "from 1 to 256"]),
}  # fmt: skip


@pytest.mark.parametrize(("argv", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_line(call, argv, words):
    status, out, err = call(*argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
