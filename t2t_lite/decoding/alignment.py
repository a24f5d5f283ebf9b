"""Word alignment from the decoder's attention to the source.

Words are separated by whitespace, as in `text.split()`, and numbered from 0. Pieces are matched to the text letter by
letter, so any vocabulary works: SentencePiece with or without bytes and unknown pieces, UTF-8 bytes, or whole words.
"""

import re

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.scoring import GivenTargets
from t2t_lite.errors import UserError
from t2t_lite.models.attention_weights import attention_weights

UNKNOWN = "<unk>"

_BLANK = "\u2581"  # SentencePiece's space
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_MARK = "\udfff"  # stands for an unknown piece; a lone surrogate cannot occur in a text
_BROKEN = "\ufffd"  # stands for invalid UTF-8


def memory_attention(model, layer=-2):
    """Returns `GivenTargets` of float32 [target length, longest source]: the attention weights of each step.

    They are the mean over the heads of one layer. The default is the last layer but one, which Garg et al. 2019
    ("Jointly learning to align and translate with Transformer models", section 4) found to align best. A model with
    three layers confirmed this on Multi30k: this layer gave 72 % of the links that IBM model 1 finds in both directions
    (the first layer 70 %, the last 66 %). Taking the weights one step later, when the piece is the decoder's input
    (Chen et al. 2020), gave 14 %.

    Args:
        model: see `t2t_lite.models.attention_weights`.
        layer: int, index of a decoder layer; negative counts from the last. The first if there are fewer layers.

    Raises:
        UserError: at the first call, if the model does not show its attention.
    """

    def attention(inputs, targets):
        layers = attention_weights(model, {"inputs": inputs, "targets": targets})["memory"]
        weights = layers[max(layer, -len(layers))]  # [B, heads, T, S]
        return tf.reduce_mean(tf.cast(weights, tf.float32), 1)

    return GivenTargets(attention)


def word_alignment(source_text, source_pieces, target_text, target_pieces, attention):
    """Aligns each word of a target with the source word that its pieces attend to most.

    Args:
        source_text, target_text: str.
        source_pieces, target_pieces: lists of str, their pieces without EOS (`Translation.source_tokens`, `.tokens`).
        attention: float [target pieces (+ EOS), source pieces + EOS] (`Translation.attention`). Attention to the
            source's EOS is ignored.

    Returns:
        Sorted list of (source word, target word), ints from 0: one per target word with at least one piece.

    Raises:
        UserError: the pieces do not match the text.
    """
    if not target_text.split():  # its pieces are spaces, or a stop string
        return []
    source, target = piece_words(source_text, source_pieces), piece_words(target_text, target_pieces)
    if not source or not target:
        return []
    weights = np.zeros((max(target) + 1, max(source) + 1))
    rows = attention[: len(target), : len(source)]
    np.add.at(weights, (np.array(target)[:, None], np.array(source)[None, :]), rows)
    return sorted((int(weights[word].argmax()), word) for word in set(target))


def pharaoh(pairs):
    """Formats pairs as Pharaoh does, "0-0 1-2": source word, target word."""
    return " ".join(f"{source}-{target}" for source, target in pairs)


def replace_unknown(source_text, source_pieces, target_pieces, attention, unknown=UNKNOWN):
    """Returns the target text, with each word that contains an unknown piece replaced by a source word.

    The source word is the one that the unknown piece attends to most. The target word keeps its punctuation. This
    copies unknown names, for example.

    Args:
        source_text, source_pieces, target_pieces, attention: see `word_alignment`.
        unknown: str, the unknown piece.
    """
    words, source = source_text.split(), piece_words(source_text, source_pieces)
    chosen = []
    for row, piece in zip(attention, target_pieces, strict=False):
        if piece == unknown:
            weights = np.bincount(source, weights=row[: len(source)]) if source else []
            chosen.append(words[int(np.argmax(weights))] if len(weights) else "")
    separator = "" if any(_BLANK in piece for piece in target_pieces) else " "
    text = separator.join(surface for surface, _ in _units(target_pieces, unknown))
    found = iter(chosen)
    return " ".join(_with_source_word(word, found) for word in text.split())


def _with_source_word(word, chosen):
    marks = word.count(_MARK)
    if not marks:
        return word
    copied, *_ = [next(chosen) for _ in range(marks)]
    before, after = (
        re.match(r"\W*", word[: word.index(_MARK)])[0],
        re.search(r"\W*$", word[word.rindex(_MARK) + 1 :])[0],
    )
    return before + (re.sub(r"^\W+|\W+$", "", copied) or copied) + after


def piece_words(text, pieces, unknown=UNKNOWN):
    """Returns for each piece the number of its word in `text`; a space on its own belongs to the next word.

    Args:
        text: str; words after the last piece are ignored.
        pieces: list of str.
        unknown: str, the unknown piece, which matches any letters.

    Raises:
        UserError: the pieces do not match the text.
    """
    if not pieces:
        return []
    units, count = _units(pieces, unknown), len(text.split())
    letters = ["".join(surface.split()) for surface, _ in units]
    places = _places("".join(text.split()), letters)
    if places is None:
        if not any(_BLANK in piece for piece in pieces) and len(pieces) == count:
            return list(range(count))  # a word vocabulary with its own symbol for unknown words
        if not any(_BLANK in piece for piece in pieces) or not count:
            raise UserError(f"Cannot align {text[:40]!r}: its pieces, {' '.join(pieces[:5])} …, are not found in it.")
        # The vocabulary normalizes letters: count the words in the pieces instead.
        text = "".join(surface for surface, _ in units)
        places = np.cumsum([0, *map(len, letters)]).tolist()
    owner = [min(number, count - 1) for number, word in enumerate(text.split()) for _ in word]
    return [owner[min(at, len(owner) - 1)] for at, (_, n) in zip(places, units, strict=False) for _ in range(n)]


def _places(text, units):
    """Returns where each unit begins in a text without spaces, or None if the units do not match it."""
    at, places = 0, []
    for number, unit in enumerate(units):
        places.append(at)
        if unit in (_MARK, _BROKEN):  # extends to the next known letters
            known = next((u for u in units[number + 1 :] if u not in ("", _MARK, _BROKEN)), None)
            at = len(text) if known is None else text.find(known, at)
        else:
            at = at + len(unit) if text.startswith(unit, at) else -1
        if at < 0:
            return None
    return places if text else None


def _units(pieces, unknown):
    """Returns [(text, number of pieces)]: one per piece, or one per letter if pieces are UTF-8 bytes."""
    units, pending = [], b""
    for piece in [*pieces, ""]:
        byte = _BYTE.fullmatch(piece)
        if byte:
            pending += bytes([int(byte[1], 16)])
            continue
        for letter in pending.decode("utf-8", errors="surrogateescape"):
            broken = "\udc80" <= letter <= "\udcff"  # shown as U+FFFD, one for each byte or for several
            units.append((_BROKEN if broken else letter, len(letter.encode("utf-8", errors="surrogateescape"))))
        pending = b""
        units.append((_MARK if piece == unknown else piece.replace(_BLANK, " "), 1))
    return units[:-1]
