"""What a search refuses before TensorFlow is imported."""

import pytest

from tests.bin.conftest import REQUIRED


@pytest.mark.parametrize(
    ("argv", "words"),
    {
        "a search's flag without a search": (
            ["--autotune_max_trials=3"],
            ["not with training, only with --hp"],
        ),
        "a search and seeds": (
            [*REQUIRED, "--output_dir=d", "--hparams_range=x", "--random_seeds=1,2"],
            ["--random_seeds: not with --hparams_range", "--autotune_seeds=N"],
        ),
        "a search without evaluations": (
            [*REQUIRED, "--output_dir=d", "--hparams_range=x", "--schedule=train"],
            ["needs runs that are trained and evaluated, not --schedule=train"],
        ),
        "a search in a bucket": (
            [*REQUIRED, "--output_dir=gs://bucket/search", "--hparams_range=x"],
            ["gs://bucket/search", "Expected a local folder"],
        ),
        "a search that exports": (
            [*REQUIRED, "--output_dir=d", "--hparams_range=x", "--export_saved_model"],
            ["Export the best trial by t2t-exporter"],
        ),
        "a spread over one seed": (["--autotune_seeds=1"], ["--autotune_seeds=1", "from 2 to 1,000, or 0"]),
    }.values(),
)
def test_mistakes_are_one_line(call, argv, words):
    status, out, err = call(*argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def test_a_run_does_not_go_into_the_folder_of_a_search(call, tmp_path):
    (tmp_path / "study.journal").touch()
    status, _, err = call(*REQUIRED, f"--output_dir={tmp_path}")
    assert status == 2 and "is the folder of a search" in err
