"""The continuation of one prompt, part by part, as soon as its text is certain."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from t2t_lite.decoding.answering import TextModel, continuation
from t2t_lite.decoding.hypothesis import Hypothesis
from t2t_lite.decoding.search.rules import before_stop
from t2t_lite.decoding.search.searcher import bucket_width
from t2t_lite.settings.ranges import EXTRA_LENGTH

if TYPE_CHECKING:
    from t2t_lite.decoding.hypothesis import Prompt
    from t2t_lite.settings.search_options import SearchOptions

_MOST_INCOMPLETE = 3  # bytes of a character in UTF-8 without its last one


class GenerationStream(Iterator[str]):
    """An iterator of str, the parts of a continuation: see `Generator.stream`.

    Nothing is computed before the first part is asked for, nor after the last one that is.

    Args:
        generator: TextModel, the Generator.
        prompt: Prompt.
        options: SearchOptions of a greedy search or of one sample.

    Attributes:
        prompt_ids: list of int, what was read of the prompt.
        truncated: bool, whether its beginning was not read: see `Generation`.
        ids: list of int, those generated so far, without EOS.
        text: str, the text so far, which is all parts together.
        ended: bool, whether the model or a stop string has ended the continuation. At the stream's end False means that
            it reached its maximum length.
        stop: str, the stop string that ended it, or None.
    """

    def __init__(self, generator: TextModel, prompt: Prompt, options: SearchOptions):
        self.prompt_ids, self.truncated = prompt.ids, prompt.truncated
        self.ids, self.text, self.ended, self.stop = [], "", False, None
        self._generator, self._prompt, self._stops = generator, prompt, options.stop
        self._longest = generator.searcher.longest_output(len(prompt.ids), options)
        # What the steps are traced for must be little: any length and any stop string would otherwise be traced anew.
        length = min(bucket_width(options.extra_length), int(EXTRA_LENGTH.most))
        options = dataclasses.replace(options, stop=(), extra_length=max(length, options.extra_length))
        # A problem may make any text of an output, so that of its beginning says nothing.
        self._is_plain = not (generator.problem and generator.problem.overrides("output_text"))
        self._ids = itertools.islice(generator.searcher.stream(prompt.ids, options), self._longest)

    def __next__(self) -> str:
        while not (part := self.step()):
            if part is None:
                raise StopIteration
        return part

    def step(self) -> str | None:
        """Generates one more id; returns what it adds to the text that is certain, perhaps "". None: it has ended."""
        if self._ids is None:
            return None
        if (i := next(self._ids, None)) is None:
            self._ids = None
            return self._add(self._end())
        self.ids.append(i)
        part = self._add(self._certain() if self._is_plain else "")
        if self.stop is not None:
            self._ids = None
        return part

    def close(self):
        """Ends the stream, and frees what the model keeps of it."""
        self._ids = None

    def _end(self):
        """Returns the whole continuation, and notes why it ended."""
        prompt, ended = self._prompt, len(self.ids) < self._longest
        found = Hypothesis(ids=self.ids, ended=ended)
        end = self._generator.hypothesis(prompt.text, found, self._stops, prompt.ids)
        self.ended, self.stop = end.ended, first_stop(self._continuation(self.ids), self._stops)
        return end.text

    def _add(self, text):
        """Notes that the continuation begins with a text; returns what of it is new."""
        part = text[len(self.text) :]
        self.text += part
        return part

    def _certain(self):
        """Returns the part of the continuation that no further id can change."""
        settled = self._generator.encoders["targets"].num_settled(self.ids)
        text = self._continuation(self.ids[:settled])
        # Each byte of a character that is not complete may be a U+FFFD; what is before these is no character at all.
        text = text[: max(len(text.rstrip("\ufffd")), len(text) - _MOST_INCOMPLETE)]
        if (stop := first_stop(text, self._stops)) is not None:
            self.stop, self.ended = stop, True
            return before_stop(text, self._stops)
        return text[: len(text) - _beginning_of_stop(text, self._stops)]

    def _continuation(self, ids):
        return continuation(self._generator.encoders["targets"], self._prompt.ids, ids)


def first_stop(text, stops):
    """Returns the string before which `before_stop` cuts a text, or None."""
    return min((stop for stop in stops if stop in text), key=text.find, default=None)


def _beginning_of_stop(text, stops):
    """Returns how many characters at a text's end may be the beginning of one of the strings."""
    lengths = (n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n]))
    return max(lengths, default=0)
