"""What t2t-translate-all reads is not overwritten."""
# ruff: noqa: F811

import os

import pytest

from tests.integration.test_outputs import contents, folder, made  # noqa: F401


@pytest.mark.parametrize(
    "args",
    {
        "plot over the source": [
            "t2t-translate-all",
            "--model_dir=run",
            "--source=in",
            "--reference=ref",
            "--plot=./in",
        ],
        "plot over the reference": [
            "t2t-translate-all",
            "--model_dir=run",
            "--source=in",
            "--reference=ref",
            "--plot=ref",
        ],
        "plot over weights": [
            "t2t-translate-all",
            "--model_dir=run",
            "--source=in",
            "--reference=ref",
            "--plot=run/model.ckpt-100.index",
        ],
        "plot over a translation": [
            "t2t-translate-all",
            "--model_dir=run",
            "--source=in",
            "--reference=ref",
            "--plot=translations/translate_own-100",
        ],
        "plot over settings": [
            "t2t-translate-all",
            "--model_dir=run",
            "--source=in",
            "--reference=ref",
            "--plot=translations/translate_own-settings.json",
        ],
        "a source in the place of a copy": [
            "t2t-translate-all",
            "--model_dir=run",
            "--source=translations/translate_own-flags.txt",
        ],
    }.values(),
)
def test_no_input_is_overwritten(folder, call_command, assert_user_error, args):
    before = contents(folder)
    assert_user_error(call_command(*args), "--")
    assert contents(folder) == before


def test_a_folder_in_the_place_of_an_output(folder, call_command, assert_user_error):
    place = "translations/translate_own-scores.png"
    os.makedirs(place)
    before = contents(folder)
    result = call_command(
        *["t2t-translate-all", "--model_dir=run", "--source=in", "--reference=ref", "--translations_dir=translations"]
    )
    assert_user_error(result, f"{place}: is a folder", "Expected a file")
    assert contents(folder) == before
