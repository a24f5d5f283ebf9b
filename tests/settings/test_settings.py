"""Every declared setting has a range or words, and refuses what is outside, however it is set."""

import math

import pytest

from t2t_lite import registry
from t2t_lite.decoding.command.decode_hparams import DecodeHParams, decode_settings
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import Choices, Range, own_settings, settings_of
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
