"""Word alignment from the decoder's attention to the source.

Words are separated by whitespace, as in `text.split()`, and numbered from 0. The word of a piece is determined by the
piece's position in the text (`t2t_lite.text.offsets`), not by its spelling in the vocabulary.
"""

import bisect
import re

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.scoring import GivenTargets
from t2t_lite.decoding.search.adapters import Ensemble
from t2t_lite.errors import UserError
from t2t_lite.models.outputs import attention_weights
from t2t_lite.text.offsets import spans_in_blocks

_MARK = "\udfff"  # stands for an unknown piece, since valid text cannot contain a lone surrogate


def memory_attention(model):
    """Returns a `GivenTargets` that computes each step's attention weights, float32 [target length, longest source].

    The weights are averaged over the heads of the last layer but one, or of the only layer, and over the models of an
    ensemble. Garg et al. 2019 ("Jointly learning to align and translate with Transformer models", section 4) found that
    this layer aligns best. A model with three layers confirmed it on Multi30k: the last layer but one gave 72 % of the
    links that IBM model 1 finds in both directions, the first layer 70 % and the last 66 %. Weights taken one step
    later, when the piece is the decoder's input (Chen et al. 2020), gave 14 %.

    Args:
        model: a model that exposes its attention weights, see `t2t_lite.models.outputs`, or an `Ensemble` of such.

    Raises:
        UserError: at the first call, if the model does not expose its attention to inputs.
    """

    def attention(inputs, targets):
        features, means = {"inputs": inputs, "targets": targets}, []
        for one in model.models if isinstance(model, Ensemble) else [model]:  # they may differ in layers and heads
            layers = attention_weights(one, features).get("memory")
            if layers is None:
                raise UserError(
                    f"The model {type(one).__name__} does not expose its attention to inputs. Expected a model with an "
                    "encoder and a decoder, such as t2t_lite.models.Transformer."
                )
            weights = layers[-2:][0]  # [B, heads, T, S]
            means.append(tf.reduce_mean(tf.cast(weights, tf.float32), 1))
        return tf.add_n(means) / len(means)

    return GivenTargets(attention)


def word_alignment(source_text, source_spans, target_text, target_spans, attention):
    """Aligns each word of a target with the source word that its pieces attend to most.

    Args:
        source_text, target_text: str.
        source_spans, target_spans: lists of (start, end), the positions of the texts' pieces, without EOS
            (`Translation.source_spans`, `Hypothesis.spans`).
        attention: float [target pieces (+ EOS), source pieces + EOS] (`Hypothesis.attention`). Attention to the
            source's EOS is ignored.

    Returns:
        Sorted list of pairs of word numbers (source, target), which are counted from 0. There is one pair for each
        target word that has at least one piece.
    """
    source, target = piece_words(source_text, source_spans), piece_words(target_text, target_spans)
    rows, columns = ([at for at, word in enumerate(words) if word is not None] for words in (target, source))
    if not rows or not columns:
        return []
    source, target = np.array([source[at] for at in columns]), np.array([target[at] for at in rows])
    weights = np.zeros((target.max() + 1, source.max() + 1))
    np.add.at(weights, (target[:, None], source[None, :]), np.asarray(attention)[np.ix_(rows, columns)])
    return sorted((int(weights[word].argmax()), word) for word in set(target.tolist()))


def pharaoh(pairs):
    """Formats pairs of word numbers (source, target) in Pharaoh's format, "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in pairs)


def piece_words(text, spans):
    """Returns the number of the word in `text` to which each piece belongs; a space belongs to the next word.

    Args:
        text: str.
        spans: list of (start, end), the positions of the pieces in `text`.

    Returns:
        list with one item per piece: an int, or None for a piece after the last word. Such pieces exist if the text was
        cut off before a stop string.
    """
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    words = [bisect.bisect_right(ends, start) for start, _ in spans]
    return [word if word < len(ends) else None for word in words]


def replace_unknown(source_text, source_spans, text, spans, unknown, attention):
    """Replaces each target word that contains an unknown piece with a source word.

    The source word is the word to which the unknown piece attends most. The target word keeps its punctuation. In this
    way, unknown names are copied, for example.

    Args:
        source_text, source_spans, attention: see `word_alignment`.
        text, spans: the target and the positions of its pieces: see `t2t_lite.text.offsets.decode_with_offsets`.
        unknown: {index of an unknown piece: str, the characters in `text` that stand for it}.

    Returns:
        (the target with these words replaced, the positions of the new target's pieces).
    """
    source, words = piece_words(source_text, source_spans), source_text.split()
    columns = [at for at, word in enumerate(source) if word is not None]
    chosen, marks = [], []
    for at, surface in unknown.items():
        start, end = spans[at]
        if start < end:
            weights = np.bincount([source[column] for column in columns], np.asarray(attention)[at, columns])
            chosen.append(words[int(weights.argmax())] if len(weights) else "")
            marks.append((end - len(surface) if text[start:end].endswith(surface) else start, end, _MARK))
    text, spans = _replaced(text, spans, marks)
    copies = iter(chosen)
    words = [
        (word.start(), word.end(), _with_source_word(word[0], copies))
        for word in re.finditer(r"\S+", text)
        if _MARK in word[0]
    ]
    return _replaced(text, spans, words)


def _replaced(text, spans, replacements):
    """Replaces slices of a text; returns the new text and the spans, shifted to their places in the new text.

    Args:
        text: str.
        spans: list of (start, end).
        replacements: list of (start, end, the new str for this slice), in order of the starts.
    """
    parts, blocks, at, new = [], [], 0, 0
    for start, end, replacement in [*replacements, (len(text), len(text), "")]:
        parts += [text[at:start], replacement]
        blocks += [
            (at, start, new, new + start - at),
            (start, end, new + start - at, new + start - at + len(replacement)),
        ]
        new += start - at + len(replacement)
        at = end
    return "".join(parts), spans_in_blocks(spans, blocks)


def _with_source_word(word, chosen):
    """Replaces the marked pieces of a target word by a source word; the target word keeps its punctuation."""
    copied, *_ = [next(chosen) for _ in range(word.count(_MARK))]
    before, after = word[: word.index(_MARK)], word[word.rindex(_MARK) + 1 :]
    without_punctuation = re.sub(r"^\W+|\W+$", "", copied) or copied
    return re.match(r"\W*", before)[0] + without_punctuation + re.search(r"\W*$", after)[0]
