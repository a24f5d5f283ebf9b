"""Translator: translates text by beam search with a trained model."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from t2t_lite.corpora.sentences import sentence_parts
from t2t_lite.decoding import minimum_bayes_risk
from t2t_lite.decoding.alignment import memory_attention, replace_unknown
from t2t_lite.decoding.hypothesis import Hypotheses, Hypothesis
from t2t_lite.decoding.ids import check_ids, ids_reader, prefix_ids
from t2t_lite.decoding.parts import splits_sentences, translate_parts
from t2t_lite.decoding.scoring import TargetScore, token_log_probs
from t2t_lite.decoding.search.beam_search import EOS_ID
from t2t_lite.decoding.search.stop_strings import before_stop
from t2t_lite.decoding.text_model import TextModel
from t2t_lite.decoding.texts import check_text, check_texts, one_for_each
from t2t_lite.errors import UserError, counted, located
from t2t_lite.evaluation.tokenizations import check_tokenization, target_language, tokenization_of_problem
from t2t_lite.ranges import Range, typed_value
from t2t_lite.tasks.sequence_to_sequence import SequenceToSequenceTask
from t2t_lite.text.beginnings import encode_beginning
from t2t_lite.text.offsets import decode_with_offsets, moved_spans, piece_spans

MAX_INPUT_LENGTH = 1024
_SHORT, _LEAST_PIECES = 3, 30  # an output of less than a third of so many pieces is short


@dataclasses.dataclass(frozen=True)
class Translation(Hypotheses):
    """The translation of one sentence.

    Attributes:
        hypotheses: tuple of at most n_best `Hypothesis`, best first; at least one. If the problem reranks outputs
            (`Problem.choose_output`), its choice comes first.
        truncated: bool, whether the sentence was longer than `max_input_length` and therefore truncated.
        source_tokens: list of str, the translated pieces.
        source_spans: list of (start, end), the characters of the text that each of them stands for. None unless
            attention is requested.
        parts: int, in how many parts the text was translated.
        is_short: bool, whether the output, or that of a part, has less than a third of the pieces of a text of 30 or
            more: probably the search ended before all of it was translated.
        text, score, tokens, attention: those of the first hypothesis.
    """

    source_tokens: list[str] = dataclasses.field(default_factory=list)
    source_spans: list[tuple[int, int]] | None = dataclasses.field(default=None, compare=False, repr=False)
    parts: int = 1
    is_short: bool = False

    @property
    def attention(self) -> np.ndarray | None:
        """The first hypothesis's: see `Hypothesis`."""
        return self.hypotheses[0].attention


class Translator(TextModel):
    """Translates with a model. Create it once and call it often, since it keeps traced and compiled functions.

    The model's weights are read at every call, so that the trainer can use one with the model in training.

    Args:
        model: a model, see `t2t_lite.decoding.search.beam_search` for the methods it may have.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}.
        hparams: HParams of the model.
        problem: the Problem, or None.

    Example:
        >>> translator = t2t_lite.Translator.load("train/ende")            # doctest: +SKIP
        >>> translator.translate(["Hello world."])[0].text                 # doctest: +SKIP
        'Hallo Welt.'
    """

    answers_as, task, method = "Translator", SequenceToSequenceTask, "translate"

    def __init__(self, model, encoders, hparams, problem=None):
        super().__init__(model, encoders, hparams, problem)
        self.max_input_length = min(self.searcher.longest_input or MAX_INPUT_LENGTH, MAX_INPUT_LENGTH)

    def translate(
        self,
        texts: Sequence[str],
        *,
        split_sentences: str | None = None,
        max_input_length: int | None = None,
        replace_unknown: bool = False,
        prefixes: Sequence | None = None,
        encoded: Sequence | None = None,
        return_attention: bool = False,
        return_token_scores: bool = False,
        on_progress: Callable[[int], object] | None = None,
        **options,
    ) -> list[Translation]:
        """Translates sentences; a blank one gives a blank translation.

        Args:
            texts: list of str.
            split_sentences: "always": translate the sentences of a text one by one, and join their translations;
                "never": translate each text as it is. None, or "auto": split texts of several sentences if the model
                was trained on single ones, since it would end before all of them are translated: see
                `t2t_lite.decoding.parts.splits_sentences`. The k-th hypothesis of a text that is split joins the
                k-th ones of its sentences (the last one of a sentence that has fewer); its score is their sum.
            max_input_length: int, longer sentences are truncated to this many ids, EOS included; None: 1024, or the
                size of a learned position table.
            replace_unknown: bool, whether each word with an unknown piece is replaced by the word of the text that the
                piece attends to most.
            prefixes: list of str, one per text, with which its output begins; "" or None for none. Its pieces are
                forced as they are, so it should end at a word's end (the output may still continue that word). Or
                lists of their ids, without EOS.
            encoded: None, or the texts' ids if they are known: one list per text, from `encoders["inputs"]`, without
                EOS. Then no text is split.
            return_attention, return_token_scores: bool, whether hypotheses get their `attention` and `spans`, or their
                `token_scores`; each costs one more pass over the hypotheses.
            on_progress: None, or a function called with the number of sentences in each finished batch.
            **options: of `t2t_lite.search_options.SearchOptions`: beam_size, alpha, extra_length, n_best and so on, or
                sampling=True with temperature, top_k, top_p and seed; a problem may have other defaults
                (`decode_defaults`).

        Returns:
            list of `Translation`, in the order of `texts`. Sentences do not influence one another.

        Raises:
            UserError: an option is out of range, a prefix is as long as the longest output, an id is outside the
                vocabulary, or there is not one prefix or list of ids for each text.
        """
        texts = check_texts(texts)
        if parts := encoded is None and self._parts(texts, split_sentences):
            arguments = {"max_input_length": max_input_length, "replace_unknown": replace_unknown, **options}
            asked = {"return_attention": return_attention, "return_token_scores": return_token_scores}
            translate = functools.partial(self.translate, split_sentences="never", **arguments, **asked)
            return translate_parts(translate, texts, parts, self._language, prefixes, on_progress)
        texts, originals, options = [self._prepared(text) for text in texts], texts, self.search_options(options)
        longest = self.checked_length(max_input_length) - 1  # beside EOS
        encoder = self.encoders["inputs"]
        read = functools.partial(_encode, encoder, longest=longest)
        if encoded is not None:
            read = ids_reader(encoded, len(texts), encoder.vocab_size)
        ids = {at: read(text, at) for at, text in enumerate(texts) if text.strip()}
        ids = {at: pieces for at, pieces in ids.items() if pieces}  # a text of only control characters is blank, too
        blank = Translation((Hypothesis(token_scores=[] if return_token_scores else None),))
        translations = [blank] * len(texts)
        if on_progress and len(ids) < len(texts):
            on_progress(len(texts) - len(ids))
        sources = [[*pieces[:longest], EOS_ID] for pieces in ids.values()]
        forced = self._prefixes(prefixes, len(texts), dict(zip(ids, sources, strict=True)), options)
        found = self._search(sources, options, forced, on_progress)
        has_attention = return_attention or replace_unknown
        of_each = self._of_each(sources, found, has_attention, return_token_scores)
        for at, source, results in zip(ids, sources, found, strict=True):
            pieces, spans = encoder.pieces(source[:-1]), None
            if has_attention:
                spans = piece_spans(encoder, source[:-1], texts[at])
                spans = moved_spans(spans, texts[at], originals[at])
            of_source = (originals[at], spans) if has_attention else None, replace_unknown
            hypotheses = tuple(
                self._hypothesis(texts[at], result, options.stop, *of_source, next(of_each)) for result in results
            )
            is_short = len(pieces) >= _LEAST_PIECES and len(hypotheses[0].ids) * _SHORT < len(pieces)
            is_truncated = len(ids[at]) > longest
            translations[at] = Translation(hypotheses, is_truncated, pieces, spans, is_short=is_short)
        return translations

    def _hypothesis(self, text, result, stop, source, replaces, fields):
        """Returns the Hypothesis of a result; of a `source`, (text, spans of its pieces), with its own spans."""
        if source is None:
            return self.hypothesis(text, result, stop, **fields)
        encoder = self.encoders["targets"]
        output, spans = decode_with_offsets(encoder, result.ids)
        output = before_stop(output, stop)
        spans = [(min(start, len(output)), min(end, len(output))) for start, end in spans]
        if replaces:
            unknown = {at: encoder.decode([i]) for at, i in enumerate(result.ids) if i == encoder.unknown_id}
            output, spans = replace_unknown(*source, output, spans, unknown, fields["attention"])
        found = self.hypothesis(text, result, stop, output=output, **fields)
        return dataclasses.replace(found, spans=moved_spans(spans, output, found.text))

    def _parts(self, texts, split_sentences):
        """Returns the list of sentences of each text; None if all are to be translated as they are."""
        if not splits_sentences(split_sentences, self.problem, self.run and self.run.config):
            return None
        parts = list(map(sentence_parts, texts))
        return parts if any(len(of_text) > 1 for of_text in parts) else None

    @property
    def _language(self):
        return target_language(self.problem)

    def translate_by_risk(
        self,
        texts: Sequence[str],
        *,
        utility: str = "chrf",
        num_samples: int = 32,
        tokenize: str | None = None,
        **arguments,
    ) -> list[Translation]:
        """Samples translations and ranks them by minimum Bayes risk: the most similar to all others first.

        See `t2t_lite.decoding.minimum_bayes_risk`.

        Args:
            texts: list of str.
            utility: "chrf" or "bleu", the measure of similarity.
            num_samples: int.
            tokenize: the tokenization for BLEU; None: as in evaluations, by default that of the target language.
            **arguments: of `translate`: split_sentences, temperature, top_k, top_p, seed and so on.

        Returns:
            list of `Translation`, in the order of `texts`, with all distinct samples, best first. Their scores are
            expected utilities, from 0 to 100.

        Raises:
            UserError: an option out of range.
        """
        minimum_bayes_risk.check_utility(utility)
        tokenize = tokenize or tokenization_of_problem(self.problem, self.hparams)
        check_tokenization(tokenize)
        texts = check_texts(texts)
        if parts := arguments.get("encoded") is None and self._parts(texts, arguments.pop("split_sentences", None)):
            of_texts = {name: arguments.pop(name, None) for name in ("prefixes", "on_progress")}
            given = {"utility": utility, "num_samples": num_samples, "tokenize": tokenize, "split_sentences": "never"}
            translate = functools.partial(self.translate_by_risk, **given, **arguments)
            return translate_parts(translate, texts, parts, self._language, **of_texts)
        arguments |= {"split_sentences": "never", "sampling": True, "n_best": num_samples}
        drawn = self.translate(texts, **arguments)
        translations = []
        for translation in drawn:
            ranks = minimum_bayes_risk.expected_utilities([h.text for h in translation.hypotheses], utility, tokenize)
            best = tuple(dataclasses.replace(translation.hypotheses[at], score=value) for at, value in ranks)
            translations.append(
                dataclasses.replace(translation, hypotheses=best) if translation.source_tokens else translation
            )
        return translations

    def score(
        self,
        texts: Sequence[str],
        targets: Sequence[str],
        *,
        batch_size: int = 16,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[TargetScore]:
        """Returns log-probabilities of given translations under the model, as beam search computes them.

        Args:
            texts: list of str.
            targets: list of str, one per text.
            batch_size: int, pairs per pass; fewer if they are longer than 128 ids.
            on_progress: None, or a function called with the number of pairs in each finished batch.

        Returns:
            list of `TargetScore`.

        Raises:
            UserError: the numbers of texts and targets differ, or a text is too long for the model.
        """
        texts, targets = check_texts(texts), check_texts(targets, "targets")
        if len(texts) != len(targets):
            raise UserError(
                f"{counted(len(texts), 'text')}, but {counted(len(targets), 'target')}: expected one for each."
            )
        pairs = []
        for number, pair in enumerate(zip(texts, targets, strict=True), 1):
            with located(f"sentence {number}"):
                pairs.append(self.pair_ids(*pair))
        return self.score_ids(pairs, batch_size=batch_size, on_progress=on_progress)

    def score_ids(
        self, pairs: Sequence, *, batch_size: int = 16, on_progress: Callable[[int], object] | None = None
    ) -> list[TargetScore]:
        """As `score`, of pairs of ids: `pair_ids` of each text and its target. Raises `UserError` for other ids."""
        sizes = [self.encoders[side].vocab_size for side in ("inputs", "targets")]
        rows = []
        for number, pair in enumerate(pairs, 1):
            with located(f"pair {number}"):
                rows.append([check_ids(ids, size) for ids, size in zip(pair, sizes, strict=True)])
        sources, targets = ([row[side] for row in rows] for side in (0, 1))
        found = self._scorer(sources, targets, batch_size, on_progress)
        return [TargetScore(float(log_probs.sum()), log_probs.tolist()) for log_probs in found]

    def pair_ids(self, text: str, target: str) -> list[list[int]]:
        """Returns the ids of a text and of its target, each with EOS, as `score` reads them.

        Raises:
            UserError: one is outside the vocabulary, or too long for the model.
        """
        found = []
        for side, what, given in (("inputs", "text", self._prepared(text)), ("targets", "target", target)):
            ids = [*self.encoders[side].encode(given), EOS_ID]
            if len(ids) > self.max_input_length:
                raise UserError(
                    f"the {what} has {len(ids):,} ids, EOS included; the longest that can be scored has "
                    f"{self.max_input_length:,}. Split it, or leave it out."
                )
            found.append(ids)
        if self.searcher.joins_inputs and (length := sum(map(len, found))) > self.searcher.max_length:
            raise UserError(
                f"the text and the target have {length:,} ids together, each with EOS; the longest that can be scored "
                f"have {self.searcher.max_length:,}. Split them, or leave them out."
            )
        return found

    def translate_ids(self, inputs: Iterable, **options) -> list[list[int]]:
        """Translates ids to ids.

        Args:
            inputs: list of lists of int, as records hold them: each ends in EOS (1); 0s after it are ignored.
            **options: of `SearchOptions`.

        Returns:
            list of lists of int: the first output of each, see `Translation`, without EOS.

        Raises:
            UserError: an id is outside the vocabulary, or an option is out of range.
        """
        size, longest = self.encoders["inputs"].vocab_size, self.checked_length(None)
        sources = []
        for row, ids in enumerate(inputs):
            ids = list(ids)
            with located(f"inputs, row {row}"):
                ids = check_ids(ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids, size)
            sources.append([*ids[: longest - 1], EOS_ID])
        return [results[0].ids for results in self._search(sources, self.search_options(options))]

    def _search(self, sources, options, prefixes=None, on_progress=None):
        """Returns for each source a list of at most n_best `Hypothesis`, the problem's choice first."""
        if options.sampling or not (self.problem and self.problem.chooses_output):
            return self.searcher.search(sources, options, prefixes, on_progress)
        every = dataclasses.replace(options, n_best=options.beam_size)
        found = self.searcher.search(sources, every, prefixes, on_progress)
        source, target = self.encoders["inputs"], self.encoders["targets"]
        for ids, results in zip(sources, found, strict=True):
            outputs = [target.decode(result.ids) for result in results]
            results.insert(0, results.pop(self.problem.choose_output(source.decode(ids), outputs, self.encoders)))
            del results[options.n_best :]
        return found

    def _prefixes(self, prefixes, count, sources, options):
        """Returns the prefixes' ids of `sources`, a dict of those of `count` texts that are not blank, or None."""
        if prefixes is None:
            return None
        prefixes = [
            prefix if isinstance(prefix, list | tuple | np.ndarray) else check_text(prefix or "", at, "prefixes")
            for at, prefix in enumerate(one_for_each(prefixes, count, "prefixes"))
        ]
        forced = []
        for at, source in sources.items():
            with located(f"sentence {at + 1}"):
                longest = self.searcher.longest_output(len(source), options)
                forced.append(prefix_ids(self.encoders["targets"], prefixes[at], longest))
        return forced

    def _of_each(self, sources, found, return_attention, return_token_scores):
        """Yields for each result of each source the requested extra fields of its `Hypothesis`, as a dict."""
        pairs = [(source, result) for source, results in zip(sources, found, strict=True) for result in results]
        inputs = [source for source, _ in pairs]
        outputs = [result.all_ids for _, result in pairs]
        fields = {}
        if return_token_scores:
            fields["token_scores"] = [log_probs.tolist() for log_probs in self._scorer(inputs, outputs)]
        if return_attention:
            weights = self._attention(inputs, outputs)
            fields["attention"] = [rows[:, : len(source)] for source, rows in zip(inputs, weights, strict=True)]
        for at in range(len(pairs)):
            yield {name: values[at] for name, values in fields.items()}

    @functools.cached_property
    def _scorer(self):
        return token_log_probs(self.model, self.searcher.max_length if self.searcher.joins_inputs else None)

    @functools.cached_property
    def _attention(self):
        return memory_attention(self.model)

    def _prepared(self, text):
        return self.problem.input_text(text) if self.problem else text

    def checked_length(self, length, name="max_input_length"):
        """Returns the longest input in ids, EOS included: `length`, or the model's own maximum for None.

        Raises:
            UserError: no whole number from 1, or beyond a learned position table; it calls the length `name`.
        """
        if length is None:
            return self.max_input_length
        length = typed_value(name, length, int, Range(1, 2**20))
        if length > (longest := self.searcher.longest_input or length):
            rest = f", and inputs at {longest}, as outputs follow them in it" if self.searcher.joins_inputs else ""
            raise UserError(
                f"{name}={length}: the model's table of positions ends at {self.searcher.max_length}{rest}."
            )
        return length


def _encode(encoder, text, at, longest):
    with located(f"sentence {at + 1}"):
        return encode_beginning(encoder, text, longest)
