"""Texts of several sentences, which a client sends one by one, and their answers."""

import dataclasses

from t2t_lite.corpora.sentences import checked_choice, join_texts, progress_in_wholes, sentence_parts

_SHORT, _LEAST_BYTES = (
    6,
    200,
)  # an answer of less than a sixth of the bytes of a text of at least 200 is short, in any two scripts


def parts_of(texts, split_sentences, wants_sentences):
    """Returns the list of sentences of each text; None if all are to be sent as they are.

    Args:
        texts: list of str.
        split_sentences: one of `SPLIT_SENTENCES`, or None for "auto".
        wants_sentences: function without arguments that returns whether the export's model expects single sentences;
            for "auto" it is called if a text has several.

    Raises:
        UserError: the choice is unknown.
    """
    if checked_choice(split_sentences) == "never":
        return None
    parts = list(map(sentence_parts, texts))
    if not any(len(of_text) > 1 for of_text in parts):
        return None
    return parts if split_sentences == "always" or wants_sentences() else None


def joined(translate, parts, on_progress=None):
    """Translates the parts of texts, and returns the Answers of the texts, whose scores are the sums of the parts'.

    Args:
        translate: function of a list of str and `on_progress`: see `Client.translate`.
        parts: list of lists of str, the parts of each text.
        on_progress: as for `Client.translate`.
    """
    flat = [part for of_text in parts for part in of_text]
    translations = iter(
        translate(flat, on_progress=on_progress and progress_in_wholes(on_progress, len(parts), len(flat)))
    )
    answers = []
    for of_text in parts:
        of_parts = [next(translations) for _ in of_text]
        flags = {name: any(getattr(answer, name) for answer in of_parts) for name in ("truncated", "is_short")}
        text, _ = join_texts([answer.text for answer in of_parts])
        answers.append(
            dataclasses.replace(of_parts[0], text=text, score=sum(answer.score for answer in of_parts), **flags)
        )
    return answers


def is_short(text, answer):
    """Returns whether an answer is so much shorter than its text that part of that is probably not translated."""
    size = len(text.encode())
    return size >= _LEAST_BYTES and len(answer.encode()) * _SHORT < size
