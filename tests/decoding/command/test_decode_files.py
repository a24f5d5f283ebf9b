"""Which jobs give each of two searches a thread."""

import types

import pytest

from t2t_lite.decoding.command.decode_files import searches_many_batches
from t2t_lite.decoding.command.decode_hparams import DecodeHParams


@pytest.mark.parametrize(
    "settings, job, lines, expected",
    [
        ("", {}, 256, True),
        ("", {}, 255, False),
        ("batch_size=4", {}, 32, True),
        ("batch_size=1", {}, 1000, False),  # compiled
        ("sampling_method=random", {}, 1000, False),  # compiled
        ("", {"predicts": True}, 1000, False),
        ("", {"mbr": "chrf"}, 1000, False),  # samples
        ("", {"devices": ["CPU:0", "CPU:1"]}, 1000, False),
    ],
)
def test_only_many_uncompiled_batches_are_searched_with_a_thread_each(settings, job, lines, expected):
    usual = {"settings": DecodeHParams.parse(settings), "predicts": False, "mbr": None, "devices": []}
    job = types.SimpleNamespace(**{**usual, **job})
    assert searches_many_batches(job, lines) is expected
