"""Translates lines: long ones in parts, blank ones as blanks, those that cannot be translated as the user wishes."""

import dataclasses

from t2t_lite.data.translate import TranslateProblem
from t2t_lite.decoding.alignment import UNKNOWN, pharaoh, replace_unknown, word_alignment
from t2t_lite.decoding.long_input import join_texts, split_text
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.decoding.translator import Hypothesis
from t2t_lite.errors import UserError

LONG_INPUT = ("split", "truncate", "refuse")
_BLANK = (Hypothesis(),)
_SAMPLES = 32  # of a line, to choose the one of least risk among


@dataclasses.dataclass(frozen=True)
class LineTranslation:
    """What became of one line.

    Attributes:
        hypotheses: tuple of `Hypothesis`, best first. Of a line in several parts, the k-th joins the k-th ones of all
            parts (the last one of a part that has fewer), and its score is the sum of theirs.
        truncated: bool, whether the line was cut off.
        parts: int, how many parts it was translated in; 0: it was skipped.
        alignment: str, "0-0 1-2", pairs of a word of the line and one of the first hypothesis, from 0; None: not asked.
    """

    hypotheses: tuple = _BLANK
    truncated: bool = False
    parts: int = 1
    alignment: str | None = None

    text = property(lambda self: self.hypotheses[0].text)


class LineTranslator:
    """Translates lists of lines by one set of settings.

    Args:
        translator: Translator, or what has its `translate`, `translate_by_risk`, `encoders`, `problem`, `hparams`,
            `max_input_length` and `checked_length`.
        settings: DecodeHParams.
        name: str, what the lines are of, for messages: a file, standard input.
        long_input: one of `LONG_INPUT`: what becomes of lines over the limit; None: split, but truncate where
            `max_input_size` is set, as in tensor2tensor, or where the problem is not one of natural language.
        on_error: function that is told, in a message, of each line that cannot be translated; it raises, or the line
            is skipped.
        utility: "chrf" or "bleu": num_samples outputs are drawn, and those of least risk come first. None: no.
        token_scores: bool, whether hypotheses get theirs.
        alignments: bool, whether the lines get theirs.

    Attributes:
        limit: int, the longest line in ids, EOS included, that is left whole.
        long_input: what is done to others.
        compile: as in `SearchOptions`.
    """

    def __init__(
        self,
        translator,
        settings,
        name,
        *,
        long_input=None,
        on_error=None,
        utility=None,
        token_scores=False,
        alignments=False,
    ):
        self.translator = translator
        self.settings = settings
        self.name = name
        given = settings.max_input_size != -1
        self.long_input = long_input or ("truncate" if given or not _is_natural(translator.problem) else "split")
        self.limit = translator.checked_length(settings.max_input_size if given else None)
        if self.long_input == "split" and not given:  # there is no longer sentence in training
            self.limit = min(self.limit, translator.hparams.max_length or self.limit)
        self._on_error = on_error or _raise
        self._ids = {}  # text -> ids, of the lines in hand
        self._utility = utility
        self.compile = None
        self._options = vars(settings.search_options())
        self._asked = {"return_token_scores": True} if token_scores else {}
        self._alignments = alignments
        self._attention = {"return_attention": True} if alignments or settings.replace_unknown else {}
        languages = translator.problem.languages if translator.problem else None
        self._language = languages[1] if languages else None

    def translate(self, lines, first=1, prefixes=None, on_progress=None):
        """Translates lines.

        Args:
            lines: list of str; None: a line that is skipped.
            first: int, the number of the first one, for messages.
            prefixes: None, or as many str, with which the outputs have to begin.
            on_progress: None, or a function that is told how many more lines are translated, parts counting as such.

        Returns:
            list of `LineTranslation`.

        Raises:
            UserError: what `on_error` raises; an option out of range.
        """
        prefixes = prefixes or [""] * len(lines)
        self._ids.clear()
        parts = [self._parts(*line) for line in zip(lines, prefixes, range(first, first + len(lines)), strict=True)]
        texts = [part for of_line in parts for part in of_line]
        begin = []  # the prefix is that of the first part
        for of_line, prefix in zip(parts, prefixes, strict=True):
            begin += ([prefix if of_line[0].strip() else ""] + [""] * (len(of_line) - 1)) if of_line else []
        if on_progress and len(texts) > len(lines):
            on_progress = _in_lines(on_progress, len(lines), len(texts))
        found = iter(self._translate(texts, begin if any(begin) else None, on_progress))
        return [
            self._joined(of_line, [next(found) for _ in of_line], number) for number, of_line in enumerate(parts, first)
        ]

    def check_lengths(self, lines, first=1):
        """Tells `on_error` of the lines that would be refused; returns the lines, None in place of these.

        Args:
            lines: list of str.
            first: int, the number of the first one, for messages.
        """
        if self.long_input != "refuse":
            return lines
        kept = []
        for number, line in enumerate(lines, first):
            self._ids.clear()
            kept.append(line if self._parts(line, "", number) else None)
        return kept

    def length(self, text):
        """Returns the length of a text in ids, EOS included."""
        return len(self._encoded(text)) + 1

    def _encoded(self, text):
        """Returns the ids of a text, without EOS; those that are known are not made again for the translator."""
        if text not in self._ids:
            problem, valid = self.translator.problem, valid_unicode(text)
            valid = problem.input_text(valid) if problem else valid
            self._ids[text] = self.translator.encoders["inputs"].encode(valid)
        return self._ids[text]

    def _parts(self, line, prefix, number):
        """Returns the texts that the line is translated as; [] where it is skipped."""
        if line is None:
            return []
        try:
            length = self.length(line) if line.strip() else 0
            if length > self.limit and self.long_input == "refuse":
                raise UserError(f"{length:,} pieces, more than {self.limit:,}. Split it, or --long_input=split.")
            parts = [line]
            if length > self.limit and self.long_input == "split":
                parts = split_text(line, self.length, self.limit)
            self._check_prefix(prefix, parts[0])
            return parts
        except UserError as error:
            self._on_error(f"{self.name}, line {number}: {error}")
            return []

    def _check_prefix(self, prefix, part):
        if prefix and part.strip():
            length = len(self.translator.encoders["targets"].encode(prefix))
            longest = min(self.length(part), self.limit) + self.settings.extra_length - 1
            if length > longest:
                raise UserError(
                    f"its prefix has {length:,} pieces, and its output at most {longest:,} "
                    "(--decode_hparams=extra_length=N allows for more)."
                )

    def _translate(self, texts, prefixes, on_progress):
        arguments = {"max_input_length": self.limit, "on_progress": on_progress, **self._asked, **self._attention}
        arguments["encoded"] = [self._encoded(text) if text.strip() else [] for text in texts]
        if prefixes:
            arguments["prefixes"] = prefixes
        arguments |= self._options | {"compile": self.compile}
        if not self._utility:
            return self.translator.translate(texts, **arguments)
        count = self.settings.num_samples if self.settings.num_samples != -1 else _SAMPLES
        arguments |= self.settings.sampling_options()
        found = self.translator.translate_by_risk(texts, utility=self._utility, num_samples=count, **arguments)
        kept = max(self.settings.n_best, 1)
        return [dataclasses.replace(one, hypotheses=one.hypotheses[:kept]) for one in found]

    def _joined(self, texts, translations, number):
        """Makes one LineTranslation of the translations of a line's parts."""
        if not translations:
            return LineTranslation(parts=0, alignment="" if self._alignments else None)
        alignment = self._alignment(texts, translations, number) if self._alignments else None
        if self.settings.replace_unknown:
            pairs = zip(texts, translations, strict=True)
            translations = [_with_source_words(text, found) for text, found in pairs]
        count = max(len(found.hypotheses) for found in translations)
        hypotheses = tuple(
            _join([found.hypotheses[min(rank, len(found.hypotheses) - 1)] for found in translations], self._language)
            for rank in range(count)
        )
        truncated = any(found.truncated for found in translations)
        return LineTranslation(hypotheses, truncated, len(translations), alignment)

    def _alignment(self, texts, translations, number):
        """Returns the Pharaoh text of a line's parts: words count through."""
        pairs, source, target = [], 0, 0
        for text, found in zip(texts, translations, strict=True):
            if found.tokens:
                try:
                    of_part = word_alignment(text, found.source_tokens, found.text, found.tokens, found.attention)
                except UserError as error:
                    self._on_error(f"{self.name}, line {number}: {error}")
                    return ""
                pairs += [(source + one, target + other) for one, other in of_part]
            source, target = source + len(text.split()), target + len(found.text.split())
        return pharaoh(pairs)


def _join(hypotheses, language):
    """Makes one Hypothesis of those of consecutive parts."""
    if len(hypotheses) == 1:
        return hypotheses[0]
    return Hypothesis(
        text=join_texts([part.text for part in hypotheses], language),
        score=sum(part.score for part in hypotheses),
        tokens=[token for part in hypotheses for token in part.tokens],
        ids=[token for part in hypotheses for token in part.ids],
        ended=all(part.ended for part in hypotheses),
        token_scores=[score for part in hypotheses for score in part.token_scores or ()],
    )


def _with_source_words(text, translation):
    """Returns the Translation with the source's words in place of unknown ones."""
    return dataclasses.replace(
        translation,
        hypotheses=tuple(
            dataclasses.replace(
                found, text=replace_unknown(text, translation.source_tokens, found.tokens, found.attention)
            )
            if UNKNOWN in found.tokens
            else found
            for found in translation.hypotheses
        ),
    )


def _in_lines(on_progress, num_lines, num_parts):
    """Returns a function of a number of parts that tells `on_progress` of so many lines."""
    done = told = 0

    def add(count):
        nonlocal done, told
        done += count
        on_progress(done * num_lines // num_parts - told)
        told = done * num_lines // num_parts

    return add


def _is_natural(problem):
    """Whether the problem's texts are sentences of a language, and can be parted into such."""
    return problem is None or isinstance(problem, TranslateProblem)


def _raise(message):
    raise UserError(message)
