"""The config.json of foreign families and our arguments for it, both ways, in odd numbers: one row per family.

published_weights.tsv beside the tests of families has the names of their weights in Transformers (the state dicts of
its modeling_….py): family, class with our head (-: body), path of the layer or weight here, name there.
"""

import pathlib
from typing import NamedTuple

import pytest

from t2t_lite import registry
from t2t_lite.extras.hugging_face.named_weights import PerHead

SIZES = {
    "vocab_size": 53, "hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 6, "intermediate_size": 88,
    "max_position_embeddings": 77,
}  # fmt: skip
ENCODER = {"vocab_size": 53, "hidden_size": 24, "num_layers": 5, "num_heads": 6, "filter_size": 88, "max_position": 77}
USUAL = {"activation": "gelu", "norm_epsilon": 1e-12, "num_segments": 2}
RATES = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3}
MORE = RATES | {"type_vocab_size": 3, "layer_norm_eps": 1e-6, "hidden_act": "relu"}
CHANGED = {
    "dropout": 0.2, "attention_dropout": 0.3, "num_segments": 3, "norm_epsilon": 1e-6, "activation": "relu"
}  # fmt: skip
WRITTEN = {"tie_word_embeddings": True, "dtype": "float32"}


class FamilyRow(NamedTuple):
    """What a family's config.json says.

    Attributes:
        name: str, by which the family is registered.
        least: dict, the fields that a file must have.
        usual: dict, our arguments for these fields: sizes, and what the family's own package has as defaults.
        more: dict, further fields, with values that are not the defaults.
        changed: dict, our arguments for these, where they differ from `usual`.
        written: dict, the fields that are written in addition, or with other values than those of `least` and `more`.
        head: str, suffix of the class in the file.
        facts: dict, attributes of the Family.
    """

    name: str
    least: dict
    usual: dict
    more: dict
    changed: dict
    written: dict
    head: str = "ForMaskedLM"
    facts: dict = {}  # noqa: RUF012


def check_family(row):
    """Reads the least and more of a row, and writes the latter for a model that was made of it."""
    family = registry.family(row.name)
    name = {"architectures": [family.class_prefix + row.head]}
    assert family.arguments(family.read("config.json", name | row.least)) == row.usual
    arguments = family.arguments(family.read("config.json", name | row.least | row.more))
    assert arguments == row.usual | row.changed
    options = {"self_attention": {"type": "relative_segments"}} if row.name == "xlnet" else {}
    for argument in [each for each in arguments if "." in each]:
        options["self_attention"][argument.partition(".")[2]] = arguments.pop(argument)
    config = family.model(**arguments, **options).config
    expected = name | row.least | row.more | {"model_type": row.name} | row.written
    assert family.written(config, family.class_prefix + row.head, {}) == expected
    assert {fact: getattr(family, fact) for fact in row.facts} == row.facts


def named(entry):
    """Returns the name in a table of weights, with the layout of a kernel that is stored by head."""
    if not isinstance(entry, PerHead):
        return entry
    return f"{entry.name} ({'output by head' if entry.is_output else 'by head'})"


def weights_are_as_published(test_file):
    """Returns a test of the families in the published_weights.tsv beside a test file."""
    text = pathlib.Path(test_file).with_name("published_weights.tsv").read_text(encoding="utf-8")
    lines = [tuple(line.split("\t")) for line in text.splitlines() if not line.startswith("#")]

    @pytest.mark.parametrize("name", dict.fromkeys(line[0] for line in lines))
    def test(name):
        family = registry.family(name)
        found = {("-", path, named(entry)) for path, entry in family.weights.items()}
        for end, (head, table) in family.heads.items():
            rows = [(path, named(entry)) for path, entry in table.items()] or [("-", "-")]
            found |= {(f"{end}={head or ''}", *row) for row in rows}
        assert found == {line[1:] for line in lines if line[0] == name}

    return test


def families_are_as_published(rows):
    """Returns a test of some rows."""

    @pytest.mark.parametrize("row", rows, ids=lambda row: row.name)
    def test(row):
        check_family(row)

    return test
