"""What a search reads is not overwritten."""
# ruff: noqa: F811

import os

from tests.integration.test_outputs import contents, folder, made  # noqa: F401


def test_a_folder_in_the_place_of_an_output(folder, call_command, assert_user_error):
    place = "search/tuning.json"
    os.makedirs(place)
    before = contents(folder)
    result = call_command(
        *[
            "t2t-trainer",
            "--problem=translate_own",
            "--hparams_set=transformer_tiny",
            "--data_dir=data",
            "--output_dir=search",
            "--hparams_range=transformer_base_range",
        ]
    )
    assert_user_error(result, f"{place}: is a folder", "Expected a file")
    assert contents(folder) == before
