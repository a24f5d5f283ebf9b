"""HParams: typed values, overrides, JSON; the grammar of `--hparams` and `--decode_hparams`."""

import copy
import math
import pickle
import re
from typing import ClassVar

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams, parse_assignments
from t2t_lite.settings.ranges import setting


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("batch_size=1e3", "batch_size", 1000),  # an int takes a number that is whole
        ("clip_grad_norm=1", "clip_grad_norm", 1.0),
        (" num_heads = 2 , hidden_size = 8 ", "hidden_size", 8),
        ("attention_bias=True", "attention_bias", True),
        ("attention_bias=0", "attention_bias", False),
        ("learning_rate_schedule=", "learning_rate_schedule", ""),
        ("learning_rate_schedule=constant*rsqrt_decay", "learning_rate_schedule", "constant*rsqrt_decay"),
        ("learning_rate_constant=5e-1", "learning_rate_constant", 0.5),
        ("num_heads=4,", "num_heads", 4),
    ],
)
def test_parsed_text_sets_a_typed_value_in_a_copy(text, name, value):
    base = HParams()
    found = getattr(base.parse(text), name)
    assert found == value and type(found) is type(value) and base == HParams()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("num_head=4", ["'num_head'", "Nearest: num_heads"]),
        ("num_heads=four", ["--hparams: num_heads=four", "expected a whole number from 1 to 4,096"]),
        ("num_heads=4 hidden_size=8", ["num_heads", "expected a whole number", "4 hidden_size=8"]),
    ],
)
def test_mistakes(text, words):
    with pytest.raises(UserError) as caught:
        HParams().parse(text)
    for word in words:
        assert word in str(caught.value)


def test_assigning_an_undeclared_name_is_an_error():
    hparams = HParams()
    with pytest.raises(UserError, match=r"'hiden_size' is not declared. Nearest: .*hidden_size"):
        hparams.hiden_size = 8
    with pytest.raises(
        UserError, match=r"'conv_first_kernel' is not declared\. There are no convolutions.*local_moe\.$"
    ):
        hparams.conv_first_kernel = 8
    with pytest.raises(AttributeError, match="hidden_size"):
        _ = hparams.hiden_size
    for wrong in (lambda: setattr(hparams, "xyz", 8), lambda: hparams.parse("xyz=8")):
        with pytest.raises(UserError, match=r"'xyz' is not .*[a-z]\. docs/hparams_sets\.md lists all names\."):
            wrong()


def test_a_users_own_hyperparameter_behaves_like_the_others():
    hparams = HParams()
    hparams.add_hparam("my_rate", 0.5)
    assert "my_rate" in hparams
    changed = hparams.parse("my_rate=2")
    assert changed.my_rate == 2.0 and changed != hparams != HParams()
    assert HParams.from_json(hparams.to_json()) == hparams
    assert HParams.from_json(hparams.to_json()).my_rate == 0.5
    with pytest.raises(UserError, match="already exists"):
        hparams.add_hparam("my_rate", 1.0)
    with pytest.raises(UserError, match="already exists"):
        hparams.add_hparam("num_heads", 1)
    with pytest.raises(UserError, match="my_rate=fast: expected a number"):
        hparams.my_rate = "fast"


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, -math.inf], {"a": 1}, None, [object()]])
def test_a_users_own_hyperparameter_is_one_that_json_can_hold(value):
    hparams = HParams()
    with pytest.raises(UserError, match=r"'mine': expected .* a finite number"):
        hparams.add_hparam("mine", value)
    hparams.add_hparam("mine", 1.0)
    hparams.add_hparam("list", [1.0])
    with pytest.raises(UserError, match=r"mine=.*expected a number"):
        hparams.mine = "nan"
    with pytest.raises(UserError, match="list"):
        hparams.list = [math.nan]
    assert HParams.from_json(hparams.to_json()) == hparams
    hparams.list.append(math.nan)
    with pytest.raises(UserError, match="list"):
        hparams.to_json()


def test_a_share_below_1_is_below_it_in_float32_too():
    for name in ("layer_prepostprocess_dropout", "optimizer_adam_beta2", "ema_decay"):
        with pytest.raises(UserError, match="below 1"):
            HParams().parse(f"{name}=0.99999999")
        assert HParams().parse(f"{name}=0.9999999").get(name) == 0.9999999


def test_json_round_trip_of_every_registered_set():
    for name in registry.list_hparams():
        hparams = registry.hparams(name)
        assert HParams.from_json(hparams.to_json()) == hparams, name


def test_json_is_sorted_one_value_a_line():
    lines = HParams().to_json().splitlines()[1:-1]
    names = [re.match(r' "(\w+)": ', line)[1] for line in lines]
    assert names == sorted(HParams().values())


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"num_heads": "x"}'])
def test_json_that_is_not_hyperparameters(text):
    with pytest.raises(UserError):
        HParams.from_json(text)


@pytest.mark.parametrize("clone", [HParams.copy, copy.copy, copy.deepcopy, lambda h: pickle.loads(pickle.dumps(h))])
def test_copies_are_equal_and_independent(clone):
    hparams = HParams()
    hparams.add_hparam("my_list", [1])
    twin = clone(hparams)
    assert twin == hparams
    twin.num_heads = 2
    twin.my_list.append(2)
    assert (hparams.num_heads, hparams.my_list) == (8, [1])


def test_lists_are_not_shared_with_the_declaration_and_a_set_has_its_own():
    class Model:
        HPARAMS: ClassVar = {"ids": setting([1], meaning="Some ids.")}

    HParams().of_model(Model).ids.append(2)
    assert HParams().of_model(Model).ids == [1]
    of_set = HParams()
    of_set.add_hparam("ids", [4])
    assert of_set.of_model(Model).ids == [4], "the default in place of the set's own"


def test_typed_items_of_a_list_have_the_type_of_the_items_before():
    class Model:
        HPARAMS: ClassVar = {"rates": setting([0.5], meaning="Some rates.")}

    hparams = HParams().of_model(Model)
    for name, items in (("ids", [4]), ("both", [1, 0.5]), ("switches", [True]), ("words", ["a"]), ("nothing", [])):
        hparams.add_hparam(name, items)
    parsed = hparams.parse("rates=[1,2.5],ids=[1e3],both=[2,0.1],switches=[false,true],words=[1,2],nothing=[1]")
    assert (parsed.rates, parsed.ids, parsed.both, parsed.switches) == ([1, 2.5], [1000], [2, 0.1], [False, True])
    assert (parsed.words, parsed.nothing) == (["1", "2"], ["1"])
    assert parsed.parse("ids=[5]").ids == [5]
    assert parsed.parse(r"words=[a\,b,c]").words == ["a,b", "c"]
    with pytest.raises(UserError, match=r"ids=0\.5: expected a whole number"):
        hparams.parse("ids=[0.5]")


def test_a_comma_in_a_text():
    hparams = HParams()
    hparams.add_hparam("greeting", "")
    assert hparams.parse(r"greeting=Hello\, world,num_heads=4").greeting == "Hello, world"


def test_reading():
    hparams = HParams(hidden_size=16)
    assert hparams.get("hidden_size") == 16
    assert hparams.get("nothing_of_that_name", 3) == 3
    assert hparams.values()["hidden_size"] == 16
    assert hparams.override_from_dict({"hidden_size": 32}).hidden_size == 32
    hparams.set_hparam("hidden_size", "1e3")
    assert hparams.hidden_size == 1000


def test_what_was_said_be_it_the_default():
    """A model has Keras' global dtype policy unless somebody said one."""
    assert "dtype_policy" not in HParams().said | HParams(num_heads=4).said
    for hparams in (HParams(dtype_policy="float32"), HParams().parse("dtype_policy=float32")):
        for copied in (hparams, hparams.copy(), copy.copy(hparams), hparams.parse("num_heads=4")):
            assert "dtype_policy" in copied.said
    assigned = HParams()
    assigned.dtype_policy = "float32"
    assert assigned.said == {"dtype_policy"}


def test_assignments():
    assert parse_assignments("", "--x") == {}
    assert parse_assignments("a=1, b = x y ,c=[1, 2],d=[ ]", "--x") == {"a": "1", "b": "x y", "c": ["1", "2"], "d": []}
    assert parse_assignments(r"a=x\,y,b=[1\,,2,]", "--x") == {"a": r"x\,y", "b": [r"1\,", "2"]}
    text = 'a=[{"k": 1, "of": [2, 3]}, "x"], b={"k": 1, "l": 2},c={x,d=[{1]'
    json_texts = {"a": '[{"k": 1, "of": [2, 3]}, "x"]', "b": '{"k": 1, "l": 2}'}
    assert parse_assignments(text, "--x") == {**json_texts, "c": "{x", "d": ["{1"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("=3", "--x: cannot read '=3'.* name=value"),
        ("a=1,a=2", "--x: 'a' is given twice"),
        ("b=1,2", "--x: .*'2'"),
        ("a=[,]", "--x: a=.*empty"),
        ("a=[1,,2]", "empty"),
    ],
)
def test_assignments_that_cannot_be_read(text, words):
    with pytest.raises(UserError, match=words):
        parse_assignments(text, "--x")


def test_switching_lora_off_forgets_its_alpha_and_kinds_come_first():
    hparams = HParams().parse("lora_rank=4,lora_alpha=12")
    assert hparams.parse("lora_rank=8").lora_alpha == 12 and hparams.parse("lora_rank=0").lora_alpha == 0
    changes = {"attention_stride": 5, "self_attention_type": "strided"}
    lm = HParams().of_model(registry.model("transformer_lm"))
    if "strided" in registry.Registries.patterns:
        assert lm.override_from_dict(changes).attention_stride == 5
        assert lm.parse("attention_stride=5,self_attention_type=strided").attention_stride == 5


def test_unknown_names_may_be_skipped_and_settings_are_in_the_order_of_values():
    hparams = HParams().parse("mine=3,num_heads=2", skips=lambda name: name == "mine")
    assert hparams.num_heads == 2 and "mine" not in hparams
    with pytest.raises(UserError, match="'other'"):
        HParams().parse("other=3", skips=lambda name: name == "mine")
    hparams.add_hparam("mine", 3)
    assert [*hparams.settings()] == [*hparams.values()] and hparams.settings()["mine"].kind is int
