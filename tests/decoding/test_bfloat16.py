"""bfloat16 on a CPU: it is suggested where a measurement shows that it is faster, and only there."""

import logging

import pytest
import tensorflow as tf

from t2t_lite.decoding import bfloat16
from t2t_lite.settings.config import HParams

PLAIN = {"hidden_size": 512, "filter_size": 2048, "dtype_policy": "float32"}


@pytest.fixture
def measured(monkeypatch, caplog):
    """The calls of `speedup`, which measures 2.26, on a CPU with instructions for bfloat16."""
    caplog.set_level(logging.INFO, "t2t_lite")
    calls = []
    monkeypatch.setattr(bfloat16, "_missing_for_bfloat16", lambda: "")
    monkeypatch.setattr(bfloat16, "speedup", lambda *sizes: calls.append(sizes) or 2.26)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    return calls


def suggested(caplog, rows=600, **changes):
    bfloat16.suggest("--x=y", HParams(**{**PLAIN, **changes}).values(), rows)
    return caplog.text


@pytest.mark.parametrize(("rows", "measured_rows"), [(600, 600), (25_000, 2048)])
def test_it_names_the_setting_and_the_measured_figure(measured, caplog, rows, measured_rows):
    assert "2.3 times" in suggested(caplog, rows) and "--x=y" in caplog.text
    assert measured == [(measured_rows, 512, 2048)] and len(caplog.records) == 1


@pytest.mark.parametrize(
    ("changes", "speedup", "measures", "says"),
    [
        *(({"dtype_policy": policy}, 2.0, False, "") for policy in ("mixed_bfloat16", "bfloat16", "float64")),
        ({"hidden_size": 255, "num_heads": 1}, 2.0, False, ""),
        ({"hidden_size": 256}, 2.0, True, "2.0 times"),
        ({}, 1.49, True, ""),
        ({}, 1.5, True, "1.5 times"),
    ],
)
def test_it_speaks_of_large_float32_models_that_gain(measured, caplog, monkeypatch, changes, speedup, measures, says):
    monkeypatch.setattr(bfloat16, "speedup", lambda *sizes: measured.append(sizes) or speedup)
    text = suggested(caplog, **changes)
    assert says in text and bool(text) == bool(says) and bool(measured) == measures


def test_it_measures_nothing_without_instructions_or_with_a_gpu(measured, caplog, monkeypatch):
    monkeypatch.setattr(bfloat16, "_missing_for_bfloat16", lambda: "this CPU has neither")
    assert suggested(caplog) == ""
    monkeypatch.setattr(bfloat16, "_missing_for_bfloat16", lambda: "")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    assert suggested(caplog) == "" and measured == []


def test_the_figure_is_that_of_the_shortest_turns(clock, monkeypatch):
    seconds = {tf.float32: iter([90, 8, 6, 7] + [9] * 99), tf.bfloat16: iter([90, 3, 4, 2] + [5] * 99)}
    shapes = []

    def product(a, b):
        clock.advance(next(seconds[a.dtype]))
        shapes.append((tuple(a.shape), tuple(b.shape)))
        return tf.matmul(a, b)

    monkeypatch.setattr(tf, "function", lambda function: product)
    assert bfloat16.speedup(7, 5, 3, seconds=45) == 6 / 2
    assert {*shapes} == {((7, 5), (5, 3))}


def test_products_are_really_timed():
    assert 0.01 < bfloat16.speedup(64, 32, 16, seconds=0) < 100
