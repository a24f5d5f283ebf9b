"""How `self_attention_type` and `ffn_layer` spell kinds of layers: `local_1d(block_length=64)+relative_v2/strided`."""

import re
from typing import NamedTuple

_WORD = re.compile(r"\s*([\w.-]+)\s*(?:\(([^()]*)\))?\s*")


class Word(NamedTuple):
    """A word of a kind, the name of a class, a score or a pattern.

    Attributes:
        name: str.
        options: {option: text} of its brackets, or {option: value}.
    """

    name: str
    options: dict


def read_kinds(text, setting="self_attention_type"):
    """Returns the kinds of a text, a list with the `Word`s of each.

    Kinds have / between them, their words +. Those options that are not as the hyperparameters say are in brackets
    after their word: `local_1d(block_length=64)/local_1d(block_length=128)`, several of them with ; between.

    Raises:
        ValueError: not of that form.
    """
    kinds, position, separator = [], 0, "/"
    while separator:
        match = _WORD.match(text, position)
        separator = text[match.end() : match.end() + 1] if match else "?"
        if separator not in ("", "/", "+"):
            raise ValueError(
                f"{setting}={text}: cannot read {text[match.end() if match else position :]!r}. Expected "
                "such as local_1d(block_length=64)+dot_product_relative_v2, with / between those of several layers."
            )
        if position == 0 or text[position - 1] == "/":
            kinds.append([])
        kinds[-1].append(Word(match[1], _options(f"{setting}={text}", match[1], match[2] or "")))
        position = match.end() + 1
    return kinds


def _options(text, word, brackets):
    """Returns {option: text} of a word's brackets."""
    options = {}
    for spelled in filter(str.strip, brackets.split(";")):
        option, equals, value = (part.strip() for part in spelled.partition("="))
        if not (option and equals and value) or option in options:
            raise ValueError(
                f"{text}: cannot read {spelled.strip()!r} in the brackets of {word}. Expected "
                "option=value, each option once, with ; between several."
            )
        options[option] = value
    return options


def spell_kind(words, of_hparams):
    """Returns a kind's words as `read_kinds` reads them, with those options that are not {option: value}."""
    return "+".join(_spelled_word(word, of_hparams) for word in words)


def _spelled_word(word, of_hparams):
    others = ";".join(f"{option}={value}" for option, value in word.options.items() if of_hparams[option] != value)
    return f"{word.name}({others})" if others else word.name
