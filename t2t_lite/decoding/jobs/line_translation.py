"""Translates lines: long ones and several sentences in parts, blank ones to blank ones, bad ones as a user chooses."""

import dataclasses

from t2t_lite.corpora.sentences import progress_in_wholes, sentence_parts, split_text
from t2t_lite.decoding.alignment import pharaoh, word_alignment
from t2t_lite.decoding.ids import prefix_ids
from t2t_lite.decoding.parts import is_natural, joined, splits_sentences
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.decoding.translator import Hypothesis
from t2t_lite.errors import UserError
from t2t_lite.evaluation.tokenizations import target_language
from t2t_lite.text.beginnings import encode_beginning

LONG_INPUT = ("split", "truncate", "refuse")
_BLANK = (Hypothesis(),)


@dataclasses.dataclass(frozen=True)
class LineTranslation:
    """The translation of one line.

    Attributes:
        hypotheses: tuple of `Hypothesis`, best first. If the line was split, the k-th joins the k-th ones of all parts
            (or the last one of a part that has fewer), and its score is the sum of theirs.
        truncated: bool, whether the line was truncated.
        parts: int, the number of parts that it was translated in; 0: it was skipped.
        alignment: str, "0-0 1-2", pairs of a word in the line and one in the first hypothesis, from 0, or None.
        is_short: bool, see `Translation`.
        is_long: bool, whether it had to be split or truncated, being longer than the limit.
    """

    hypotheses: tuple = _BLANK
    truncated: bool = False
    parts: int = 1
    alignment: str | None = None
    is_short: bool = False
    is_long: bool = False

    text = property(lambda self: self.hypotheses[0].text)
    tokens = property(lambda self: len(self.hypotheses[0].ids) + 1 if self.text else 0)  # ids of the output


class LineTranslator:
    """Translates lists of lines with one set of settings.

    Args:
        translator: Translator, or an object that has its `translate`, `translate_by_risk`, `encoders`, `problem`,
            `hparams`, `max_input_length`, `checked_length`, `searcher` and `run`.
        settings: DecodeHParams.
        name: str, where the lines come from, for messages: a file, standard input.
        long_input: one of `LONG_INPUT`: how to handle lines over the limit. None: split them, but truncate if
            `max_input_size` is set, as in tensor2tensor, or if the problem's texts are not natural language.
        split_sentences: one of `SPLIT_SENTENCES`, as of `Translator.translate`; None: "auto", where long lines are
            split, else "never".
        on_error: function that gets a message for each line that cannot be translated; it raises, or the line is
            skipped.
        utility: "chrf" or "bleu": samples num_samples outputs and sorts them by risk. None: no minimum Bayes risk.
        tokenize: the tokenization for the utility "bleu", see `Translator.translate_by_risk`.
        token_scores: bool, whether hypotheses get token scores.
        alignments: bool, whether lines get word alignments.

    Attributes:
        limit: int, the length in ids, EOS included, of the longest line that is not split or truncated.
        long_input: how longer lines are handled.
        compile: as in `SearchOptions`.
    """

    cut = "cut off after"  # what a long line is, in messages, with the limit after it

    def __init__(
        self,
        translator,
        settings,
        name,
        *,
        long_input=None,
        split_sentences=None,
        on_error=None,
        utility=None,
        tokenize=None,
        token_scores=False,
        alignments=False,
    ):
        self.translator = translator
        self.settings = settings
        self.name = name
        given = settings.max_input_size != -1
        self.long_input = long_input or ("truncate" if given or not is_natural(translator.problem) else "split")
        split_sentences = split_sentences or ("auto" if self.long_input == "split" else "never")
        config = translator.run and translator.run.config
        self._splits_sentences = splits_sentences(split_sentences, translator.problem, config)
        self.limit = translator.checked_length(settings.max_input_size if given else None, "max_input_size")
        if self.long_input == "split" and not given:  # training had no longer sentences
            self.limit = min(self.limit, translator.hparams.max_length or self.limit)
        self._on_error = on_error or _raise
        self._ids = {}  # text -> ids, of the current lines
        self._utility, self._tokenize = utility, tokenize
        self.compile = None
        self._options = settings.search_options(mbr=bool(utility))
        self._asked = {"return_token_scores": True} if token_scores else {}
        self._alignments = alignments
        self._asked |= {"return_attention": True} if alignments else {}
        self._asked |= {"replace_unknown": True} if settings.replace_unknown else {}
        self._language = target_language(translator.problem)

    def translate(self, lines, first=1, prefixes=None, on_progress=None):
        """Translates lines.

        Args:
            lines: list of str; None is a line to skip.
            first: int, the number of the first one, for messages.
            prefixes: None, or one str per line, with which its output has to begin.
            on_progress: None, or a function of the number of lines just translated, in which parts count as fractions.

        Returns:
            list of `LineTranslation`.

        Raises:
            UserError: raised by `on_error`, or an option is out of range.
        """
        prefixes = prefixes or [""] * len(lines)
        self._ids.clear()
        numbered = zip(lines, prefixes, range(first, first + len(lines)), strict=True)
        parts, long, begin = [], [], []  # of each line; of each line; of each part, its prefix's ids
        for line, prefix, number in numbered:
            of_line, is_long, ids = self._parts(line, prefix, number)
            parts.append(of_line)
            long.append(is_long)
            begin += [ids, *([[]] * (len(of_line) - 1))] if of_line else []  # the first part gets the prefix
        texts = [part for of_line in parts for part in of_line]
        if on_progress and len(texts) > len(lines):
            on_progress = progress_in_wholes(on_progress, len(lines), len(texts))
        found = iter(self._translate(texts, begin if any(begin) else None, on_progress))
        every = zip(lines, parts, long, strict=True)
        return [self._joined(line, some, [next(found) for _ in some], is_long) for line, some, is_long in every]

    def check_lengths(self, lines, first=1):
        """Reports lines that would be refused to `on_error`; returns the lines, with None in place of those.

        Args:
            lines: list of str.
            first: int, the number of the first one, for messages.
        """
        if self.long_input != "refuse":
            return lines
        kept = []
        for number, line in enumerate(lines, first):
            self._ids.clear()
            kept.append(line if self._parts(line, "", number)[0] else None)
        return kept

    def length(self, text):
        """Returns the length of a text in ids, EOS included; of a very long one some length over the limit."""
        return len(self._encoded(text)) + 1

    def _encoded(self, text):
        """Returns a text's ids without EOS, or more of the first ones than are read; keeps them for the translator."""
        if text not in self._ids:
            problem, encoder = self.translator.problem, self.translator.encoders["inputs"]
            prepare = problem.input_text if problem else None
            self._ids[text] = encode_beginning(encoder, valid_unicode(text), self.limit, prepare)
        return self._ids[text]

    def _parts(self, line, prefix, number):
        """Returns a line's parts, [] if it is skipped; whether it is too long for one; and the prefix's ids."""
        if line is None:
            return [], False, []
        try:
            is_long = bool(line.strip()) and self.length(line) > self.limit
            if is_long and self.long_input == "refuse":
                length = self.length(line)
                count = f"{length:,} pieces, more" if length <= 2 * self.limit else "more pieces"
                raise UserError(f"{count} than {self.limit:,}. Split it, or --long_input=split.")
            parts = sentence_parts(line) if self._splits_sentences else [line]
            if is_long and self.long_input == "split":
                parts = split_text(line, self.length, self.limit)
            if not (prefix and parts[0].strip()):
                return parts, is_long, []
            longest = self.translator.searcher.longest_output(min(self.length(parts[0]), self.limit), self._options)
            return parts, is_long, prefix_ids(self.translator.encoders["targets"], prefix, longest)
        except UserError as error:
            self._on_error(f"{self.name}, line {number}: {error}")
            return [], False, []

    def _translate(self, texts, prefixes, on_progress):
        arguments = {"max_input_length": self.limit, "on_progress": on_progress, **self._asked}
        arguments["encoded"] = [self._encoded(text) if text.strip() else [] for text in texts]
        if prefixes:
            arguments["prefixes"] = prefixes
        arguments |= vars(self._options) | {"compile": self.compile}
        if not self._utility:
            return self.translator.translate(texts, **arguments)
        count = self.settings.mbr_samples
        arguments |= {"utility": self._utility, "num_samples": count, "tokenize": self._tokenize}
        found = self.translator.translate_by_risk(texts, **arguments)
        kept = max(self.settings.n_best, 1)
        return [dataclasses.replace(one, hypotheses=one.hypotheses[:kept]) for one in found]

    def _joined(self, line, parts, translations, is_long):
        """Joins the translations of a line's parts to one LineTranslation."""
        if not translations:
            return LineTranslation(parts=0, alignment="" if self._alignments else None)
        found = joined(line, parts, translations, self._language)
        best, alignment = found.hypotheses[0], None
        if self._alignments:
            pairs = word_alignment(line, found.source_spans or [], best.text, best.spans or [], best.attention)
            alignment = pharaoh(pairs)
        return LineTranslation(found.hypotheses, found.truncated, len(parts), alignment, found.is_short, is_long)


def _raise(message):
    raise UserError(message)
