"""docs/coming_from_tensor2tensor.md: what it says of problems, models and options of decoding is so."""

import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.errors import UserError

PAGE = (pathlib.Path(__file__).parents[2] / "docs/coming_from_tensor2tensor.md").read_text(encoding="utf-8")


def rows_of(title):
    """[(names of the first column, text of the other columns)] of the table in a section."""
    rows = re.findall(r"^\| (`.*?) \|(.*)\|$", PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0], re.MULTILINE)
    return [(re.findall(r"`(\w+)`", names), others.strip()) for names, others in rows]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("title", "registered", "count"),
    [("Problems", registry.list_problems, 80), ("Models and sets", registry.list_models, 20)],
)
def test_registered_names(title, registered, count):
    said = {name: text.split("|")[0].strip() for names, text in rows_of(title) for name in names}
    assert len(said) > count
    names = {n: here for n, here in said.items() if n[0] != "_"}  # _packed1k is the end of names
    assert not {n: here for n, here in names.items() if here != ("yes" if n in registered() else "no")}


def test_options_of_decoding():
    said = [(name, text.split("|")[1].strip()) for names, text in rows_of("Options of decoding") for name in names]
    assert len(said) > 30
    valid = {"delimiter": "a", "return_beams": "true"}
    for name, here in said:
        value = valid.get(name, "2")
        if here.startswith("no"):
            with pytest.raises(UserError):
                DecodeHParams.parse(f"{name}={value}")
        elif here.startswith("ignored"):
            assert DecodeHParams.parse(f"{name}={value}") == DecodeHParams(), name
        else:
            assert here.startswith("yes"), name
            try:
                DecodeHParams.parse(f"{name}={value}")
            except UserError as error:
                assert "unknown" not in str(error), name
