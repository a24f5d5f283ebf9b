"""Translator: translates text by beam search with a trained model."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from t2t_lite.decoding import minimum_bayes_risk
from t2t_lite.decoding.alignment import memory_attention
from t2t_lite.decoding.scoring import TargetScore, token_log_probs
from t2t_lite.decoding.search.beam_search import EOS_ID
from t2t_lite.decoding.text_model import Hypotheses, Hypothesis, TextModel
from t2t_lite.decoding.texts import check_texts
from t2t_lite.errors import UserError, counted, located
from t2t_lite.evaluation.tokenizations import check_tokenization, tokenization_of_problem

MAX_INPUT_LENGTH = 1024


@dataclasses.dataclass(frozen=True)
class Translation(Hypotheses):
    """The translation of one sentence.

    Attributes:
        hypotheses: tuple of at most n_best `Hypothesis`, best first; at least one. If the problem reranks outputs
            (`Problem.choose_output`), its choice comes first.
        truncated: bool, whether the sentence was longer than `max_input_length` and therefore truncated.
        source_tokens: list of str, the translated pieces.
        text, score, tokens, attention: those of the first hypothesis.
    """

    source_tokens: list[str] = dataclasses.field(default_factory=list)

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

    task, method = "sequence_to_sequence", "translate"

    def __init__(self, model, encoders, hparams, problem=None):
        super().__init__(model, encoders, hparams, problem)
        self.max_input_length = min(self.searcher.longest_input or MAX_INPUT_LENGTH, MAX_INPUT_LENGTH)

    def translate(
        self,
        texts: Sequence[str],
        *,
        max_input_length: int | None = None,
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
            max_input_length: int, longer sentences are truncated to this many ids, EOS included; None: 1024, or the
                size of a learned position table.
            prefixes: list of str, one per text, with which its output begins; "" or None for none. Its pieces are
                forced as they are, so it should end at a word's end (the output may still continue that word). Or
                lists of their ids, from `prefix_ids`.
            encoded: None, or the texts' ids if they are known: one list per text, from `encoders["inputs"]`.
            return_attention, return_token_scores: bool, whether hypotheses get their `attention`, `token_scores`;
                each costs one more pass over the hypotheses.
            on_progress: None, or a function called with the number of sentences in each finished batch.
            **options: of `t2t_lite.search_options.SearchOptions`: beam_size, alpha, extra_length, n_best and so on, or
                sampling=True with temperature, top_k, top_p and seed; a problem may have other defaults
                (`decode_defaults`).

        Returns:
            list of `Translation`, in the order of `texts`. Sentences do not influence one another.

        Raises:
            UserError: an option is out of range, or a prefix is as long as the longest output.
        """
        texts, options = [self._prepared(text) for text in check_texts(texts)], self.search_options(options)
        longest = self.checked_length(max_input_length) - 1  # beside EOS
        encode = functools.partial(_encode, self.encoders["inputs"])
        ids = {at: encoded[at] if encoded else encode(text, at) for at, text in enumerate(texts) if text.strip()}
        ids = {at: pieces for at, pieces in ids.items() if pieces}  # a text of only control characters is blank, too
        blank = Translation((Hypothesis(token_scores=[] if return_token_scores else None),))
        translations = [blank] * len(texts)
        if on_progress and len(ids) < len(texts):
            on_progress(len(texts) - len(ids))
        sources = [[*pieces[:longest], EOS_ID] for pieces in ids.values()]
        forced = self._prefixes(prefixes, len(texts), dict(zip(ids, sources, strict=True)), options)
        found = self._search(sources, options, forced, on_progress)
        of_each = self._of_each(sources, found, return_attention, return_token_scores)
        for at, source, results in zip(ids, sources, found, strict=True):
            hypotheses = tuple(self.hypothesis(texts[at], result, options.stop, **next(of_each)) for result in results)
            pieces = self.encoders["inputs"].pieces(source[:-1])
            translations[at] = Translation(hypotheses, len(ids[at]) > longest, pieces)
        return translations

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
            **arguments: of `translate`: temperature, top_k, top_p, seed and so on.

        Returns:
            list of `Translation`, in the order of `texts`, with all distinct samples, best first. Their scores are
            expected utilities, from 0 to 100.

        Raises:
            UserError: an option out of range.
        """
        minimum_bayes_risk.check_utility(utility)
        tokenize = tokenize or tokenization_of_problem(self.problem, self.hparams)
        check_tokenization(tokenize)
        drawn = self.translate(texts, **{**arguments, "sampling": True, "n_best": num_samples})
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
        """As `score`, of pairs of ids: `pair_ids` of each text and its target."""
        sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
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
            ids = [int(i) for i in ids]
            ids = ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids
            wrong = [i for i in ids if not 0 < i < size]
            if wrong:
                raise UserError(f"inputs, row {row}: id {wrong[0]} is outside the vocabulary of {size} ids.")
            sources.append([*ids[: longest - 1], EOS_ID])
        return [results[0].ids for results in self._search(sources, self.search_options(options))]

    def _search(self, sources, options, prefixes=None, on_progress=None):
        """Returns for each source a list of at most n_best `SearchResult`, the problem's choice first."""
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
        if not (isinstance(prefixes, list) and all(isinstance(prefix, list) for prefix in prefixes)):
            prefixes = check_texts(prefixes, "prefixes", may_be_none=True)
        if len(prefixes) != count:
            raise UserError(f"{counted(count, 'text')}, but prefixes: {len(prefixes)}: expected one for each.")
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
            UserError: less than 1, or beyond a learned position table; it calls the length `name`.
        """
        if length is None:
            return self.max_input_length
        if not length >= 1:
            raise UserError(f"{name}={length}: expected at least 1.")
        if length > (longest := self.searcher.longest_input or length):
            rest = f", and inputs at {longest}, as outputs follow them in it" if self.searcher.joins_inputs else ""
            raise UserError(
                f"{name}={length}: the model's table of positions ends at {self.searcher.max_length}{rest}."
            )
        return length


def prefix_ids(encoder, prefix, longest_output):
    """Returns the ids of a text, or list of ids, with which an output of at most `longest_output` ids has to begin.

    Raises:
        UserError: there are as many or more.
    """
    ids = encoder.encode(prefix) if isinstance(prefix, str) else prefix
    if len(ids) >= longest_output:
        raise UserError(
            f"its prefix has {len(ids):,} ids, and its output at most {longest_output - 1:,}. Shorten the prefix, or "
            "raise extra_length."
        )
    return ids


def _encode(encoder, text, at):
    with located(f"sentence {at + 1}"):
        return encoder.encode(text)
