"""Every declared setting has a range or words, and refuses what is outside, however it is set."""

import dataclasses
import math

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.decoding.command.decode_hparams import DecodeHParams, decode_settings
from t2t_lite.errors import UserError
from t2t_lite.settings import ranges
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import (
    Choices,
    Range,
    check_settings,
    own_settings,
    setting,
    settings_of,
    typed_text,
    typed_value,
)
from t2t_lite.settings.search_options import SearchOptions


def _own(model_class):
    return lambda name, value: HParams().of_model(model_class).set_hparam(name, value)


# {what declares settings: ({name: Setting}, [functions of a name and a value of any type], function of a text)}
OWNERS = {
    "HParams": (
        settings_of(HParams),
        [
            lambda name, value: setattr(HParams(), name, value),
            lambda name, value: HParams.from_dict({name: value}),
            lambda name, value: HParams(**{name: value}),
        ],
        HParams().parse,
    ),
    "SearchOptions": (settings_of(SearchOptions), [lambda name, value: SearchOptions(**{name: value})], None),
    "--decode_hparams": (decode_settings(), [], DecodeHParams.parse),
    **{
        name: (own_settings(model), [_own(model)], HParams().of_model(model).parse)
        for name in registry.list_models()
        for model in [registry.model(name)]
    },
}
NOT_OUTSIDE = {("batch_size", "0"), ("sampling_keep_top_k", "-1")}  # tensor2tensor's words for the default and for all
CASES = [(owner, name) for owner, (settings, *_) in OWNERS.items() for name in settings]


@pytest.mark.parametrize(("owner", "name"), CASES)
def test_what_is_outside_is_refused(owner, name):
    settings, setters, parse = OWNERS[owner]
    declared = settings[name]
    limits, values, texts = declared.limits, [], []
    if declared.kind in (int, float):
        assert isinstance(limits, Range), "declare it by setting(default, least, most)"
        bounds = [bound for bound in (limits.least, limits.most, limits.above, limits.below) if bound is not None]
        assert len(bounds) == 2 and all(map(math.isfinite, bounds))
        if owner not in ("SearchOptions", "--decode_hparams"):  # of which some limit others
            for bound in {limits.least, limits.most} - {None}:
                assert parse(f"{name}={bound}").get(name) == bound
        lowest, highest = min(bounds), max(bounds)
        values = [lowest - 1, highest + 1, float(lowest) - 1, float(highest) * 2 + 1, math.nan, math.inf, -math.inf]
        values += [bound for bound in (limits.above, limits.below) if bound is not None]
        values = [value for value in values if value not in limits.also] + [lowest + 0.5] * (declared.kind is int)
        texts = [*values, "1e400", "9" * 30, "x", "", "[1]"]
        values += [True, None, b"1", [1]]
    elif isinstance(limits, Choices):
        assert declared.default in limits
        values = texts = ["nonsense"]
    elif declared.kind is bool:
        values, texts = [2, "2", [True]], ["perhaps", "2", "[]"]
    for value in values:
        for set_value in setters:
            with pytest.raises(UserError, match=f"{name}=.*expected"):
                set_value(name, value)
    for text in texts if parse else ():
        if owner == "--decode_hparams" and (name, str(text)) in NOT_OUTSIDE:
            continue
        with pytest.raises(UserError, match=f"--(decode_)?hparams: {name}=.*expected"):
            parse(f"{name}={text}")


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "text"),
    [
        (Range(3, 7), (3, 7, 5.5), (2, 8, 2.9, 7.1, math.nan), "from 3 to 7"),
        (Range(3), (3, 10**9), (2, math.inf), "at least 3"),
        (Range(most=7000), (7000, -1e9), (7001, -math.inf), "at most 7,000"),
        (Range(above=3, below=7), (4, 6.999), (3, 7, 3.00000001, 6.99999999), "above 3 and below 7"),
        (Range(1, 7, also=(-1, 20)), (-1, 20, 1), (0, 19), "from 1 to 7, or -1, or 20"),
        (Choices(("a", "b")), ("a", "b"), ("c", ""), "a, b"),
    ],
    ids=str,
)
def test_what_is_in_a_range(limits, inside, outside, text):
    assert all(value in limits for value in inside) and not any(value in limits for value in outside)
    assert str(limits) == text


# Of each range that has a name, with what its ends are for.
NAMED_RANGES = {
    "ALPHA": Range(0, 5),  # 0: no length penalty
    "BEAM_SIZE": Range(1, 1024),  # 1: greedy
    "COUNT": Range(0, 2**31 - 1),  # 0: none, or all; an int32
    "DECODE_BATCH": Range(1, 4096),
    "EXTRA_LENGTH": Range(0, 10_000),  # 0: as long as the input
    "NEW_TOKENS": Range(1, 10_000),
    "GPUS": Range(0, 1024),  # --worker_gpu=0: the CPU
    "PATTERN_LENGTH": Range(2, 2048),
    "SHAPES": Range(1, 64),  # --xla_shapes
    "LOGICAL_CPUS": Range(0, 64),  # 0: off
    "LOSS_SCALE": Range(1, 2**24),
    "MINUTES": Range(0, 10**7),  # --wait_minutes=0: do not wait
    "SECONDS": Range(0, 10**8),  # --save_checkpoints_secs=0: none
    "HOURS": Range(most=10**6, above=0),
    "STEPS_BETWEEN": Range(1, 10**9),  # every 0 steps would never end
    "CHARACTER_COVERAGE": Range(0.98, 1),
    "CHECKPOINTS_KEPT": Range(0, 10**6),  # --keep_checkpoint_max=0: all
    "PAIRS": Range(1, 10**9),
    "MASK_RATE": Range(0.001, 0.999),
    "METRIC_MOVE": Range(0, 10**6),  # 0: any move counts
    "SEQUENCE_LENGTH": Range(2, 2**20),  # an id and the end
    "SHARDS": Range(1, 10**6),
    "SAMPLING_SEED": Range(0, 2**31 - 1),  # an int32
    "SEED": Range(-(2**31), 2**32 - 1),  # an int32 or a uint32
    "VOCAB_SIZE": Range(1, 2**24),
}
NAMED_WORDS = {
    "JOINS": ("sum", "concat"),
    "POOLINGS": ("mean", "first", "max"),
    "COMPUTE_DTYPES": ("float32", "bfloat16"),
    "LONG_INPUTS": ("split", "truncate", "refuse"),
    "SPLIT_SENTENCES": ("auto", "always", "never"),
    "SEPARATORS": {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"},
    "NORMALIZATIONS": ("identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"),
    "MASK_UNITS": ("token", "word", "ngram", "phrase"),
}


def test_ranges_and_words_that_have_names():
    """A bound that moves by one changes what a flag accepts, such as the 0 that means all."""
    named = {name: value for name, value in vars(ranges).items() if name.isupper()}
    assert {name: value for name, value in named.items() if isinstance(value, Range)} == NAMED_RANGES
    assert {name: value for name, value in named.items() if isinstance(value, (tuple, dict))} == NAMED_WORDS


@pytest.mark.parametrize(
    ("value", "kind", "typed"),
    [
        ("1e3", int, 1000), ("9007199254740993", int, 2**53 + 1), (" -7 ", int, -7), (3.0, int, 3),
        (np.int64(3), int, 3), (np.True_, bool, True),
        ("1", float, 1.0), (np.float32(0.5), float, 0.5), ("true", bool, True), ("0", bool, False),
        ("x", str, "x"), (np.str_("x"), str, "x"), ([1], list, [1]),
        (None, int | None, None), ("None", int | None, None), ("3", int | None, 3),
    ],
)  # fmt: skip
def test_values_get_their_type(value, kind, typed):
    found = typed_value("x", value, kind)
    assert found == typed and type(found) is type(typed) and (found is not value or kind is not list)


@pytest.mark.parametrize(
    ("value", "kind", "limits", "words"),
    [
        ("1.5", int, None, r"x=1\.5: .*whole number\.$"), (True, int, None, "x=True: .*whole number"),
        (np.array([3]), int, None, r"x=array\(\[3\]\): .*whole number"), (np.float32(1.5), int, None, "whole number"),
        (b"3", float, None, "a number"),
        ("nan", float, None, "x=nan: .*a number"), ("much", float, Range(0, 5), "x=much: .*a number from 0 to 5"),
        (1, bool, None, "x=1: .*true or false"), ("yes", bool, None, "x=yes: .*true or false"), (3, str, None, "text"),
        ((1,), list, None, r"x=\(1,\): .*a list, \[a,b\]"), (None, int, None, "x=None: .*whole number"),
        ("nere", str, Choices(("near", "far")), "x=nere: .*near, far. Nearest: near"),
        (10**200, float, Range(0, 5), "x=a huge number: .*from 0 to 5"),
    ],
)  # fmt: skip
def test_values_of_another_type_are_named(value, kind, limits, words):
    with pytest.raises(UserError, match=words):
        typed_value("x", value, kind, limits)


def test_a_long_value_is_cut():
    assert typed_text("x" * 80) == "x" * 80 and typed_text("x" * 81) == "x" * 79 + "…"
    assert typed_text([1]) == "[1]" and typed_text(10**100) == repr(10**100)[:79] + "…"


def test_the_fields_of_a_dataclass_are_checked():
    @dataclasses.dataclass(frozen=True)
    class Options:
        size: int = setting(3, 1, 7)
        note: str = ""

    options = Options(size="5", note=8)
    check_settings(options, limited_only=True)
    assert (options.size, options.note) == (5, 8)
    with pytest.raises(UserError, match="note=8"):
        check_settings(options)
    with pytest.raises(UserError, match=r"size=8: .*from 1 to 7"):
        check_settings(Options(size=8), limited_only=True)
