"""How `self_attention_type` and `ffn_layer` spell kinds: `local_1d(block_length=64):strided+relative_v2/restricted`."""

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
    """Returns the kinds of a text: of each a list of a score and a pattern, or one of them, each a list of `Word`s.

    Kinds have / between them, score and pattern +, and patterns of several heads :, so that such a list has several
    words. Those options that are not as the hyperparameters say are in brackets after their word, several of them with
    ; between: `local_1d(block_length=64)/local_1d(block_length=128)`.

    Raises:
        ValueError: not of that form.
    """
    kinds, position, separator = [], 0, "/"
    while separator:
        before, match = separator, _WORD.match(text, position)
        end = match.end() if match else position
        separator = text[end : end + 1]
        if not match or separator not in ("", "/", "+", ":"):
            raise ValueError(
                f"{setting}={text}: cannot read {text[end:]!r}. Expected kinds such as strided or "
                "local_1d(block_length=64)+dot_product_relative_v2, with / between those of several layers."
            )
        word = Word(match[1], _options(f"{setting}={text}", match[1], match[2] or ""))
        if before == "/":
            kinds.append([[word]])
        elif before == "+":
            kinds[-1].append([word])
        else:
            kinds[-1][-1].append(word)
        position = end + 1
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


def spell_kind(kind, of_hparams):
    """Returns a kind as `read_kinds` reads it, with those options of its words that are not {option: value}."""

    def spelled(word):
        others = ";".join(f"{option}={value}" for option, value in word.options.items() if of_hparams[option] != value)
        return f"{word.name}({others})" if others else word.name

    return "+".join(":".join(map(spelled, words)) for words in kind)
