"""Splits texts into parts, such as sentences, that are translated separately, and joins the translations."""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from t2t_lite import registry
from t2t_lite.corpora.sentences import (
    answers_to_parts,
    checked_choice,
    join_texts,
    ranks,
    sentence_parts,
    split_text,
    starts_of,
)
from t2t_lite.data.source_text import SourceText
from t2t_lite.data.text_problems.translate import TranslateProblem
from t2t_lite.decoding.answering import Reader
from t2t_lite.decoding.texts import prefix_list
from t2t_lite.errors import UserError

_SEVERAL = 0.1  # a model can translate several sentences if at least this share of its training examples had several


def is_natural(problem):
    """Returns whether a problem's texts are natural language, which can be split into sentences; True for None."""
    return problem is None or isinstance(problem, TranslateProblem)


def splits_sentences(choice, problem, config=None):
    """Returns whether texts are split into sentences before they are translated.

    A model that was trained on single sentences stops after the first one or two sentences of a longer text.

    Args:
        choice: one of `SPLIT_SENTENCES`; None means "auto". With "auto", texts are split if they are natural language
            and fewer than one in ten of the training examples had several sentences.
        problem: Problem, or None.
        config: dict, the contents of the run's `hparams.json`. Its "several_sentences" is the share of training
            examples with several sentences; it is 0 if the run was trained by an earlier version, which did not store
            this share.

    Raises:
        UserError: an unknown choice.
    """
    if checked_choice(choice) in ("always", "never"):
        return choice == "always"
    return is_natural(problem) and ((config or {}).get("several_sentences") or 0.0) < _SEVERAL


def unbroken(parts, text, problem):
    """Joins neighbouring parts of a text if the split between them cuts a passage in `SourceText.whole`.

    Returns all parts, both those that were joined and those that were not.

    Args:
        parts: list of str, in order, with only spaces between them.
        text: str.
        problem: Problem, or None.
    """
    if len(parts) < 2 or not (problem and problem.substitution):
        return parts
    starts = starts_of(parts, text)
    spans, joined_parts, first = problem.source_text(text).whole, [], starts[0]
    for at, part in enumerate(parts):
        end = starts[at] + len(part)
        if at + 1 == len(parts) or not any(start < starts[at + 1] < stop for start, stop in spans):
            joined_parts.append(text[first:end])
            first = starts[at + 1] if at + 1 < len(parts) else end
    return joined_parts


class TextParts(NamedTuple):
    """The reading of a text in one or more parts.

    Attributes:
        text: str.
        parts: list of one or more str, in order, with only spaces between them.
        sources: list of `SourceText`, the readings of the parts.
        is_long: bool, whether the text has more ids than the reader's limit.
        prefix: list of int, ids with which the output for the text must begin.
    """

    text: str
    parts: list
    sources: list
    is_long: bool = False
    prefix: list = ()


class SentenceReader(Reader):
    """Converts texts to `TextParts` for a Translator: splits sentences, and splits, truncates or refuses long texts.

    Args:
        translator: Translator, or an object with the attributes `read`, `checked_length`, `problem`, `hparams` and
            `run`.
        max_input_length, long_input, split_sentences: see `Translator.translate`.
        as_flags: see `Reader`.
    """

    taken = (SourceText, TextParts)

    def __init__(self, translator, max_input_length=None, long_input=None, split_sentences=None, as_flags=False):
        limit = translator.checked_length(max_input_length, "max_input_size" if as_flags else "max_input_length")
        if long_input == "split" and max_input_length is None:  # training examples had at most `max_length` ids
            limit = min(limit, translator.hparams.max_length or limit)
        super().__init__(translator, limit, long_input or "truncate", as_flags)
        self._splits = splits_sentences(split_sentences, translator.problem, translator.run and translator.run.config)

    def read(self, text):
        """See `Reader`. Reads a text; a `SourceText` is not split."""
        if isinstance(text, self.taken):
            return text if isinstance(text, TextParts) else TextParts(text.text, [text.text], [text])
        read, problem = functools.cache(lambda part: self.answerer.read(part, self.limit)), self.answerer.problem

        def length(part):  # for a very long part, this is not the exact length, only a number above the limit
            return len(read(part).ids) + 1

        is_long = length(text) > self.limit
        if is_long and self.long_input == "refuse":
            count = f"{length(text):,} pieces, more" if length(text) <= 2 * self.limit else "more pieces"
            raise UserError(f"{count} than {self.limit:,}. Split the text, or use {self.argument}=split.")
        parts = unbroken(sentence_parts(text), text, problem) if self._splits else [text]
        if is_natural(problem):  # training examples have no spaces around them, which some vocabularies encode
            parts = [part if read(part).is_blank else part.strip() for part in parts]
        if is_long and self.long_input == "split":
            parts = unbroken(split_text(text, length, self.limit), text, problem)
        return TextParts(text, parts, [*map(read, parts)], is_long)


def answer_parts(translate, readings, language=None, prefixes=None, on_progress=None):
    """Translates the parts of texts and joins their translations.

    Args:
        translate: function of a list of `SourceText`, `on_progress` and perhaps `prefixes`: see `Translator.translate`.
        readings: list of `TextParts`.
        language: str, the language of the translations, or None.
        prefixes: see `Translator.translate`. The prefix of a text is used for the first part of the text.
        on_progress: see `Translator.translate`; it is called with the number of finished texts.

    Returns:
        list of `Translation`, one for each text.
    """
    if prefixes is not None:
        pairs = zip(prefix_list(prefixes, len(readings)), readings, strict=True)
        of_parts = [one for first, (_, parts, *_) in pairs for one in (first, *[None] * (len(parts) - 1))]
        translate = functools.partial(translate, prefixes=of_parts)
    translations = answers_to_parts(translate, [reading.sources for reading in readings], on_progress)
    return [joined(one.text, one.parts, group, language) for one, group in zip(readings, translations, strict=True)]


def joined(text, parts, translations, language=None):
    """Joins the translations of a text's parts into the translation of the text.

    Args:
        text: str.
        parts: list of one or more str, in order, with only spaces between them.
        translations: list of `Translation`, one for each part.
        language: str, the language of the translations, or None.

    Returns:
        `Translation`, whose k-th hypothesis joins the k-th hypotheses of the parts. A part with fewer than k hypotheses
        contributes its last hypothesis.
    """
    first = translations[0]
    spans = [one.source_spans for one in translations]
    spans = None if all(of_part is None for of_part in spans) else _shifted(spans, starts_of(parts, text))
    if len(parts) == 1:
        return dataclasses.replace(first, source_spans=spans)
    sizes = [len(one.source_tokens) for one in translations]
    by_rank = ranks([one.hypotheses for one in translations])
    return dataclasses.replace(
        first,
        hypotheses=tuple(_joined_hypotheses(rank, sizes, language) for rank in by_rank),
        truncated=any(one.truncated for one in translations),
        source_tokens=[token for one in translations for token in one.source_tokens],
        source_spans=spans,
        parts=sum(one.parts for one in translations),
        is_short=any(one.is_short for one in translations),
    )


def _joined_hypotheses(hypotheses, sizes, language):
    """Joins the hypotheses of consecutive parts; `sizes` are the numbers of source pieces of the parts."""
    text, starts = join_texts([one.text for one in hypotheses], language)
    scores = [one.token_scores for one in hypotheses if one.token_scores is not None]
    spans = [one.spans for one in hypotheses]
    facts = {
        name: [one.told[name] for one in hypotheses if name in one.told] for one in hypotheses for name in one.told
    }
    return dataclasses.replace(
        hypotheses[0],
        text=text,
        score=sum(one.score for one in hypotheses),
        tokens=[token for one in hypotheses for token in one.tokens],
        ids=[i for one in hypotheses for i in one.ids],
        ended=all(one.ended for one in hypotheses),
        stopped=hypotheses[-1].stopped,
        lost=[text for one in hypotheses for text in one.lost],
        token_scores=[score for part in scores for score in part] if scores else None,
        attention=_joined_attention(hypotheses, sizes),
        told={name: registry.teller(name).joined(values) for name, values in facts.items()},
        spans=None if all(part is None for part in spans) else _shifted(spans, starts),
    )


def _joined_attention(hypotheses, sizes):
    """Joins attentions, float32 [ids of all parts, source pieces of all parts + EOS (for all parts)]."""
    if all(one.attention is None for one in hypotheses):
        return None
    weights = np.zeros((sum(len(one.ids) for one in hypotheses), sum(sizes) + 1), np.float32)
    row = column = 0
    for one, size in zip(hypotheses, sizes, strict=True):
        count = len(one.ids)
        if one.attention is not None:
            weights[row : row + count, column : column + size] = one.attention[:count, :size]
            weights[row : row + count, -1] = one.attention[:count, size]
        row, column = row + count, column + size
    return weights


def _shifted(spans, starts):
    """Joins the spans of all parts, lists of (start, end) or None, shifting them by the starts of the parts."""
    pairs = zip(spans, starts, strict=True)
    return [(start + at, end + at) for spans_of_part, at in pairs for start, end in spans_of_part or ()]
