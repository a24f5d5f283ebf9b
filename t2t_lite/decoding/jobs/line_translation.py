"""Translates lines: long ones and several sentences in parts, blank ones to blank ones."""

import dataclasses
import functools
from typing import NamedTuple

from t2t_lite import registry
from t2t_lite.corpora.sentences import split_text
from t2t_lite.decoding.alignment import pharaoh, word_alignment
from t2t_lite.decoding.ids import prefix_ids
from t2t_lite.decoding.jobs.lines import LineAnswer, Lines
from t2t_lite.decoding.parts import is_natural, splits_sentences, translate_parts, unbroken, whole_sentences
from t2t_lite.errors import UserError
from t2t_lite.evaluation.tokenizations import target_language


class _Line(NamedTuple):
    """A line in parts, what was read of each, whether it is too long for one, and the ids its output begins with."""

    text: str
    parts: list
    sources: list
    is_long: bool
    prefix: list


class LineTranslator(Lines):
    """Translates lists of lines with one set of settings.

    If a line was split, the k-th hypothesis joins the k-th ones of all parts (or the last one of a part that has
    fewer), and its score is the sum of theirs.

    Args:
        translator: Translator, or an object that has its `read`, `translate`, `translate_by_risk`, `encoders`,
            `problem`, `hparams`, `max_input_length`, `checked_length`, `searcher` and `run`.
        settings, name, on_error, as_json: see `Lines`; with `as_json` hypotheses get token scores.
        long_input: see `Lines`. None: split, but truncate if `max_input_size` is set, as in tensor2tensor, or if the
            problem's texts are not natural language.
        split_sentences: one of `SPLIT_SENTENCES`, as of `Translator.translate`; None: "auto", where long lines are
            split, else "never".
        utility: "chrf" or "bleu": samples num_samples outputs and sorts them by risk. None: no minimum Bayes risk.
        tokenize: the tokenization for the utility "bleu", see `Translator.translate_by_risk`.
        alignments: bool, whether lines get word alignments.
        told: names of tellers, whose texts lines get.
    """

    def __init__(
        self,
        translator,
        settings,
        name,
        *,
        long_input=None,
        on_error=None,
        as_json=False,
        split_sentences=None,
        utility=None,
        tokenize=None,
        alignments=False,
        told=(),
    ):
        given = settings.max_input_size != -1
        long_input = long_input or ("truncate" if given or not is_natural(translator.problem) else "split")
        limit = translator.checked_length(settings.max_input_size if given else None, "max_input_size")
        if long_input == "split" and not given:  # training had no longer sentences
            limit = min(limit, translator.hparams.max_length or limit)
        super().__init__(translator, settings, name, limit, long_input, on_error, as_json)
        split_sentences = split_sentences or ("auto" if long_input == "split" else "never")
        config = translator.run and translator.run.config
        self._splits_sentences = splits_sentences(split_sentences, translator.problem, config)
        self._utility, self._tokenize = utility, tokenize
        self._options = settings.search_options(mbr=bool(utility))
        self._alignments = alignments
        asked = {
            "return_token_scores": as_json,
            "return_attention": alignments,
            "replace_unknown": settings.replace_unknown,
        }
        self._asked = {name: True for name, is_asked in asked.items() if is_asked} | {f"return_{n}": True for n in told}
        self._language = target_language(translator.problem)

    def read(self, line, prefix=""):
        """See `Lines`."""
        read = functools.cache(lambda text: self.answerer.read(text, self.limit))

        def length(text):  # of a very long one some length over the limit
            return len(read(text).ids) + 1

        is_long = length(line) > self.limit
        if is_long and self.long_input == "refuse":
            count = f"{length(line):,} pieces, more" if length(line) <= 2 * self.limit else "more pieces"
            raise UserError(f"{count} than {self.limit:,}. Split it, or --long_input=split.")
        parts = whole_sentences(line, self.answerer.problem) if self._splits_sentences else [line]
        if is_long and self.long_input == "split":
            parts = unbroken(split_text(line, length, self.limit), line, self.answerer.problem)
        begin = []
        if prefix and read(parts[0]).ids:
            longest = self.answerer.searcher.longest_output(min(length(parts[0]), self.limit), self._options)
            begin = prefix_ids(self.answerer.encoders["targets"], read(parts[0]).target(prefix), longest)
        return _Line(line, parts, list(map(read, parts)), is_long, begin)

    def answers(self, readings, on_progress=None):
        """See `Lines`."""
        prefixes = [line.prefix for line in readings] if any(line.prefix for line in readings) else None
        translate = functools.partial(self._translate, [source for line in readings for source in line.sources])
        texts, parts = [line.text for line in readings], [line.parts for line in readings]
        found = translate_parts(translate, texts, parts, self._language, prefixes, on_progress)
        return list(map(self._answered, readings, found))

    def read_target(self, line, _):
        """See `Lines`."""
        return self.answerer.pair_ids(*line.split("\t"))

    def scores(self, readings):
        """See `Lines`."""
        return self.answerer.score_ids(readings)

    def _translate(self, sources, _, prefixes, on_progress):
        """Returns the Translation of each `SourceText`."""
        arguments = {"max_input_length": self.limit, "on_progress": on_progress, **self._asked}
        if prefixes:
            arguments["prefixes"] = prefixes
        arguments |= vars(self._options) | {"compile": self.compile}
        if not self._utility:
            return self.answerer.translate(sources, **arguments)
        count = self.settings.mbr_samples
        arguments |= {"utility": self._utility, "num_samples": count, "tokenize": self._tokenize}
        found = self.answerer.translate_by_risk(sources, **arguments)
        best = max(self.settings.n_best, 1)
        return [dataclasses.replace(one, hypotheses=one.hypotheses[:best]) for one in found]

    def _answered(self, line, found):
        best = found.hypotheses[0]
        beside = {name: registry.teller(name).text(value) for name, value in best.told.items()}
        if self._alignments:
            spans = found.source_spans or [], best.spans or []
            beside["alignment"] = pharaoh(word_alignment(line.text, spans[0], best.text, spans[1], best.attention))
        return LineAnswer.of_output(found, len(line.parts), line.is_long, beside)
