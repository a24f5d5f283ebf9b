"""Kinds of self-attention with options, as `Transformer(self_attention=…)` takes them, and which of them are there."""

import re

import pytest

from t2t_lite.layers.attention_kinds import self_attention_names

RELATIVE = {"type": "dot_product_relative", "max_relative_position": 4}
RELATIVE_VALUES = {**RELATIVE, "add_relative_to_values": True}
MUSIC = {**RELATIVE_VALUES, "type": "dot_product_relative_v2"}
RESTRICTED = {"type": "restricted", "neighborhood": 3}
OF_EXTRAS = ("local_1d", "local_2d", "strided", "fixed", "memory", "dot_product_relative_memory", "relative_segments")


def absent(*words):
    """Returns those of words that are kinds of extras which are not there."""
    return {*words} & {*OF_EXTRAS} - {*self_attention_names()}


def registered(cases):
    """Returns those of cases, a list or a dict, that name no kind of an extra which is not there."""
    if isinstance(cases, dict):
        return dict(registered([*cases.items()]))
    return [case for case in cases if not absent(*re.findall(r"\w+", repr(case)))]


def needs(*kinds):
    """Returns the mark of a test that needs some kinds."""
    return pytest.mark.skipif(bool(absent(*kinds)), reason="of an extra that is not there")
