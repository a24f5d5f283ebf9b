"""Kinds of self-attention as hyperparameters spell them: scores, patterns and their options."""

# Nearest tests of: t2t_lite/layers/layer_kinds.py, t2t_lite/models/arguments.py

import json

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.layers.attention_kinds import (
    kinds_of,
    make_self_attention,
    self_attention_names,
)
from t2t_lite.layers.layer_kinds import kinds_config, read_kinds, spell_kind
from t2t_lite.models import TransformerLM
from t2t_lite.models.arguments import model_hparams
from t2t_lite.settings.config import HParams
from tests.layers.kinds import RELATIVE, RESTRICTED, needs, registered


def lm_hparams(changes):
    lm = registry.model("transformer_lm")
    sizes = "hidden_size=8,filter_size=16,num_heads=4,num_hidden_layers=2"
    return registry.hparams("transformer_lm_tiny").of_model(lm).parse(f"{sizes},{changes}")


@pytest.mark.parametrize(
    "changes, patterns, score",
    registered(
        [
            (
                "self_attention_type=full:restricted,attention_neighborhood=6",
                [["full", {"type": "window", "neighborhood": 6}]] * 2,
                {},
            ),
            ("self_attention_type=strided/fixed,attention_stride=5", [{"stride": 5}, {"stride": 5, "summary": 1}], {}),
            (
                "self_attention_type=local_1d(block_length=3)/local_1d(block_length=9)",
                [{"block_length": 3}, {"block_length": 9}],
                {},
            ),
            (
                "block_length=4,max_relative_position=6,self_attention_type=local_1d+dot_product_relative_v2",
                [{"block_length": 4}] * 2,
                {"max_relative_position": 6, "heads_share_relative_embedding": False, "add_relative_to_values": False},
            ),
            ("self_attention_type=dot_product_relative_memory,clamp_length=7", [{}] * 2, {"clamp_length": 7}),
            (
                "self_attention_type=local_1d(block_length=3)+memory(clamp_length=7;position_dropout=0.5)/memory+local_1d,"
                "block_length=9,clamp_length=7,position_dropout=0.5",
                [{"block_length": 3}, {"block_length": 9}],
                {"clamp_length": 7, "position_dropout": 0.5},
            ),
            (
                "self_attention_type=local_1d:strided(stride=2)+memory/strided:local_1d(block_length=5)+memory(clamp_length=4),"
                "block_length=3,attention_stride=4,clamp_length=7",
                [
                    [{"type": "local_1d", "block_length": 3}, {"type": "strided", "stride": 2}],
                    [{"type": "strided", "stride": 4}, {"type": "local_1d", "block_length": 5}],
                ],
                {"position_dropout": 0.0},
            ),
            (
                "self_attention_type=full:restricted(neighborhood=6):local_1d:fixed(stride=8),block_length=2",
                [
                    [
                        "full",
                        {"type": "window", "neighborhood": 6},
                        {"type": "local_1d", "block_length": 2},
                        {"type": "fixed", "stride": 8, "summary": 1},
                    ]
                ]
                * 2,
                {},
            ),
            (
                "self_attention_type=local_1d+memory(block_length=3;clamp_length=7)/local_1d(block_length=9)+memory,"
                "clamp_length=7",
                [{"block_length": 3}, {"block_length": 9}],
                {"clamp_length": 7},
            ),
        ]
    ),
)
def test_kinds_of_attention_bring_their_hyperparameters(changes, patterns, score):
    hparams = lm_hparams(changes)
    model = registry.model("transformer_lm").from_hparams(hparams, 20)
    for layer, options in zip(model.decoder.layers, patterns, strict=True):
        attention = layer.self_attention.layer
        if isinstance(options, list):
            assert attention.get_config()["pattern"] == options
        else:
            assert {name: getattr(attention.pattern, name) for name in attention.pattern.options()} == options
        assert score.items() <= vars(attention.score).items()
    made = model_hparams(model, hparams)
    assert made.self_attention_type.count("dot_product") == hparams.self_attention_type.count("dot_product")
    assert registry.model("transformer_lm").from_hparams(made, 20).config == model.config
    assert HParams.from_json(made.to_json()).of_model(type(model)) == made


@pytest.mark.parametrize(
    "spelled, kinds",
    registered(
        [
            ("restricted", ["restricted"]),
            ("restricted/dot_product", ["restricted", "dot_product"]),
            ("restricted(neighborhood=9)/restricted", [{"type": "restricted", "neighborhood": 9}, "restricted"]),
            (
                "local_1d+memory(block_length=3;clamp_length=7)",
                {"type": "local_1d+memory", "block_length": 3, "clamp_length": 7},
            ),
            (
                "full:local_1d(block_length=3)+memory",
                {"type": "memory", "pattern": ["full", {"type": "local_1d", "block_length": 3}]},
            ),
        ]
    ),
)
def test_kinds_may_be_json(spelled, kinds):
    found = []
    for text in (spelled, json.dumps(kinds)):
        hparams = registry.hparams("transformer_lm_tiny").override_from_dict({"self_attention_type": text})
        hparams = hparams.of_model(registry.model("transformer_lm")).parse("attention_neighborhood=5,num_heads=4")
        assert HParams.from_json(hparams.to_json()).self_attention_type == text
        found.append(registry.model("transformer_lm").from_hparams(hparams, 20).config)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "text, words",
    [
        ("[3]", "`self_attention_type` must be a name, or a dict of 'type' and options: received 3"),
        ('["restricted"', "self_attention_type=.*JSON.*local_1d"),
        ('[{"type": "restricted", "stride": 3}]', r"restricted has the options \['neighborhood'\]: .*stride"),
        ('[{"pattern": "full"}]', "`self_attention_type` has pattern='full'. Expected a list"),
        ('[{"pattern": ["full", "full"], "neighborhood": 3}]', r"dot_product has the options \[\]: .*neighborhood"),
        ("[]", "must be a name, or a dict"),
        ("[[]]", "must be a name, or a dict"),
        ("{", "JSON"),
    ],
)
def test_json_that_names_no_kind(text, words):
    hparams = registry.hparams("transformer_lm_tiny").override_from_dict({"self_attention_type": text})
    with pytest.raises(UserError, match=words):
        hparams.of_model(registry.model("transformer_lm"))


@needs("local_1d")
def test_a_hyperparameter_of_a_kind_that_is_not_named_is_unknown():
    with pytest.raises(UserError, match="'attention_stride' is not a hyperparameter"):
        lm_hparams("self_attention_type=local_1d,attention_stride=5")


@pytest.mark.parametrize(
    "kind", registered(["local_1d", "local_2d", "strided", "fixed+relative", "dot_product/strided", "full:local_1d"])
)
def test_an_encoder_refuses_patterns_that_need_an_order(kind):
    words = r"hparams: `self_attention_type` .*: \w+ .* encoder"
    for model in ("transformer", "transformer_encoder"):
        hparams = registry.hparams(f"{model}_tiny" if model == "transformer" else "bert_tiny")
        hparams = hparams.of_model(registry.model(model)).parse(f"self_attention_type={kind},max_relative_position=2")
        with pytest.raises(UserError, match=words):
            registry.model(model).from_hparams(hparams, 20)


@pytest.mark.parametrize(
    "kind, words",
    registered([
        ("local_1d(block_length=3", r"cannot read '\(block_length=3'. Expected kinds such as"),
        ("local_1d)", r"cannot read '\)'"),
        ("local_1d(block_length=3)strided", "cannot read 'strided'"),
        ("local_1d//strided", "cannot read '/strided'"),
        ("local_1d+", "cannot read ''"),
        ("local_1d(block_length)", "cannot read 'block_length' in the brackets of local_1d"),
        ("local_1d(block_length=3;block_length=4)", "cannot read 'block_length=4' in the brackets"),
        ("local_1d:strided(block_length=3):fixed", r"strided has the options \['stride'\]: .*block_length"),
        ("local_1d(stride=3)", r"local_1d has the options \['block_length'\]: .*stride"),
        ("dot_product(stride=3)", r"dot_product has the options \[\]: .*stride"),
        ("local_1d(block_length=3)+relative(block_length=4)", "block_length is given twice"),
        ("loca_1d(block_length=3)", "`self_attention_type` must be one of .* received self_attention_type='loca_1d'"),
        ("strided:dot_product", "the pattern 'dot_product' for some heads"),
        ("strided:fixed+local_1d", "`self_attention_type` local_1d has two scores or two patterns"),
        ("strided:fixed+local_1d:full", "pattern is given twice"),
        ("strided:loca_1d", "the pattern 'loca_1d' for some heads"),
        ("strided:", "cannot read ''"),
        ("strided+fixed", r"`self_attention_type` strided\+fixed has two scores or two patterns"),
    ]),
)  # fmt: skip
def test_a_kind_that_cannot_be_read(kind, words):
    with pytest.raises(UserError, match=words):
        lm_hparams(f"self_attention_type={kind}")


@pytest.mark.parametrize(
    "changes, words",
    registered([
        ("=fixed,attention_stride=3,attention_summary=4", "`attention_summary` must be at most `attention_stride`=3"),
        (
            "=fixed(summary=4),attention_stride=3",
            "`summary` must be at most `attention_stride`=3: received summary=4",
        ),
        ("=local_2d,block_width=5", "`image_width` must be a multiple of `block_width`=5: received image_width=32"),
        ("=restricted", "`attention_neighborhood` must be .* received attention_neighborhood=0"),
        ("=dot_product_relative", "`max_relative_position` must be .* received max_relative_position=0"),
        ("=strided:restricted(neighborhood=0)", "`neighborhood` must be an integer of at least 1"),
        ("=strided:strided:local_1d", "3 kinds in `self_attention_type`"),
        ("=strided(stride=0)", r"self_attention_type=strided\(stride=0\): stride=0: expected"),
        ("=local_1d(block_length=x)", r"local_1d\(block_length=x\): block_length=.*x"),
    ]),
)  # fmt: skip
def test_errors_name_the_hyperparameter_that_was_given(changes, words):
    with pytest.raises(UserError, match=words) as caught:
        registry.model("transformer_lm").from_hparams(lm_hparams(f"self_attention_type{changes}"), 20)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "kind, words",
    registered(
        [
            ({"type": "strided", "stride": 0}, "`self_attention` strided: `stride` must be .* received stride=0"),
            ({"type": "strided"}, r"`self_attention` strided has the options \['stride'\]"),
            ({"type": "restricted", "radius": 3}, r"has the options \['neighborhood'\]: received {'radius': 3}"),
            (["dot_product", "local"], r"must be one of .*dot_product, .*relative_v2.*: received .*'local'"),
            ({"pattern": ["full", "fixed"]}, r"`self_attention` fixed has the options \['stride', 'summary'\]"),
            ({"pattern": ["full"] * 3}, "3 kinds in `self_attention`"),
            ({"pattern": "full"}, "`self_attention` has pattern='full'. Expected a list"),
            ({"pattern": ["full", "relative"]}, "the pattern 'relative' for some heads"),
            ({"type": "restricted", "neighborhood": 3, "pattern": ["full", "full"]}, "two scores or two patterns"),
            ({"type": "local_1d", "block_length": 3, "pattern": ["full", "full"]}, "two scores or two patterns"),
        ]
    ),
)
def test_errors_name_the_constructors_argument(kind, words):
    with pytest.raises(ValueError, match=words):
        TransformerLM(20, self_attention=kind, hidden_size=8, filter_size=8, num_heads=4, num_layers=1)


@pytest.mark.parametrize(
    "text, kinds",
    [
        ("a", [{"type": "a"}]),
        ("a/b(x=3)", [{"type": "a"}, {"type": "b", "x": "3"}]),
        ("a:b(x=3;y=z)+c", [{"type": "c", "pattern": [{"type": "a"}, {"type": "b", "x": "3", "y": "z"}]}]),
        ("a+b(x=3;y=z)", [{"type": "a+b", "x": "3", "y": "z"}]),
    ],
)
def test_kinds_of_a_text(text, kinds):
    assert read_kinds(text) == read_kinds(f" {text.replace('/', ' / ')} ") == read_kinds(json.dumps(kinds)) == kinds
    assert "/".join(spell_kind(kind, {"x": "other", "y": "other"}) for kind in kinds) == text
    same = "/".join(spell_kind(kind, {"x": "3", "y": "other"}) for kind in kinds)
    assert same == text.replace("x=3;", "").replace("(x=3)", "")
    assert read_kinds("a(x=3)+b(y=z)") == read_kinds("a+b(x=3;y=z)")


def test_kinds_take_turns_over_the_layers():
    kinds = ["dot_product", RESTRICTED, RELATIVE]
    made = [make_self_attention(kinds, i, num_heads=2) for i in range(5)]
    assert [getattr(layer.pattern, "neighborhood", None) for layer in made] == [None, 3, None, None, 3]
    assert [getattr(layer.score, "max_relative_position", None) for layer in made] == [None, None, 4, None, None]
    assert kinds_config(kinds_of(kinds)) == ["dot_product", RESTRICTED, {**RELATIVE, "add_relative_to_values": False}]
    assert kinds_config(kinds_of([RESTRICTED])) == RESTRICTED
    assert "full" not in self_attention_names() and {"restricted", "window", "relative"} <= {*self_attention_names()}
