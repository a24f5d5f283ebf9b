"""Translator: translates text by beam search with a trained model."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

from t2t_lite import registry
from t2t_lite.data.source_text import SourceText
from t2t_lite.decoding import minimum_bayes_risk
from t2t_lite.decoding.alignment import memory_attention, replace_unknown
from t2t_lite.decoding.answering import TextModel
from t2t_lite.decoding.hypothesis import Hypothesis, Translation, asked_tellers, ends_early
from t2t_lite.decoding.scoring import TargetScore, token_log_probs
from t2t_lite.decoding.search.rules import before_stop
from t2t_lite.decoding.sentence_parts import SentenceReader, answer_parts, is_natural
from t2t_lite.decoding.texts import check_texts, each_located, id_pairs, id_rows, prefix_ids, prefix_list, valid_unicode
from t2t_lite.errors import UserError, counted
from t2t_lite.evaluation.tokenizations import check_tokenization, target_language, tokenization_of_problem
from t2t_lite.settings.ranges import Choices, Range, settings_of, typed_value
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.tasks.task import SequenceToSequenceTask
from t2t_lite.text.offsets import decode_with_offsets, moved_spans
from t2t_lite.text.rows import encode_beginning
from t2t_lite.text.vocabulary import EOS_ID

MAX_INPUT_LENGTH = 1024


class Translator(TextModel):
    """Translates texts with a trained model.

    Create a Translator once and call it often, since it keeps traced and compiled functions.

    The weights are read at every call, so the trainer can use an instance while it trains the model.

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

    task, method = SequenceToSequenceTask, "translate"

    def __init__(self, model, encoders, hparams, problem=None):
        super().__init__(model, encoders, hparams, problem)
        self._teller = functools.cache(lambda name: registry.teller(name)(model))
        self.max_input_length = min(self.searcher.longest_input or MAX_INPUT_LENGTH, MAX_INPUT_LENGTH)

    def translate(
        self,
        texts: Sequence[str],
        *,
        split_sentences: str | None = None,
        long_input: str | None = None,
        max_input_length: int | None = None,
        replace_unknown: bool = False,
        prefixes: Sequence | None = None,
        return_attention: bool = False,
        return_token_scores: bool = False,
        on_progress: Callable[[int], object] | None = None,
        **options,
    ) -> list[Translation]:
        """Translates texts. The translation of a blank text is blank. Spaces around natural language are not read.

        Args:
            texts: list of texts, each a str, a reading of the `reader`, or a result of `read`, which is never split.
            split_sentences: "always" translates the sentences of a text one by one and joins the translations; "never"
                translates each text as a whole; "auto" or None splits texts if the model was trained on single
                sentences, because it would stop before the end of a longer text (see
                `t2t_lite.decoding.sentence_parts.splits_sentences`). The k-th hypothesis of a split text joins the k-th
                hypotheses of its sentences, and its score is the sum of their scores. A sentence that has fewer than k
                hypotheses contributes its last one.
            long_input: what to do with sentences longer than `max_input_length`: "truncate" or None truncates them,
                "split" splits them after commas or at spaces, as t2t-decoder does, and "refuse" raises an error.
            max_input_length: int, the maximum number of ids per sentence, EOS included. Default: 1024, or the size of a
                learned position table; if long sentences are split, at most the hyperparameter `max_length`.
            replace_unknown: bool, whether each word with an unknown piece is replaced by the source word to which that
                piece attends most.
            prefixes: list with one item per text: a str with which the output for this text must begin, or "" or None
                for no prefix. A prefix should end with a whole word, although the output may continue that word. Items
                may also be lists of ids, without EOS.
            return_attention: bool, whether hypotheses get `attention` and `spans`.
            return_token_scores: bool, whether hypotheses get `token_scores`. Each of these two arguments costs one more
                pass over the hypotheses, as does `return_<name>` of a `Teller` such as return_ponder_steps: see
                `t2t_lite.decoding.hypothesis`.
            on_progress: None, or a function called with the number of sentences in each finished batch.
            **options: `SearchOptions`: beam_size, alpha, extra_length, n_best and so on, or sampling=True with
                temperature, top_k, top_p and seed; a problem may override the defaults (`decode_defaults`).

        Returns:
            list of `Translation`, in the order of `texts`. Sentences do not influence one another.

        Raises:
            UserError: an option is out of range, the model lacks a requested value, a prefix is as long as the longest
                output, an id is outside the vocabulary, a text is refused as too long, or the numbers of texts and
                prefixes differ.
        """
        requested = {"attention": return_attention, "token_scores": return_token_scores, "replaced": replace_unknown}
        requested["tellers"] = asked_tellers(options, self._teller)
        reader = SentenceReader(self, max_input_length, long_input, split_sentences)
        options = self.search_options(options)
        translate = functools.partial(self._translations, options, reader.limit - 1, requested)
        readings = reader.read_all(texts, "sentence")
        if prefixes is not None:
            ids_of = functools.partial(self.prefix_of, limit=reader.limit, options=options)
            prefixes = each_located("sentence", ids_of, prefix_list(prefixes, len(readings)), readings)
        return answer_parts(translate, readings, target_language(self.problem), prefixes, on_progress)

    def reader(
        self,
        max_length: int | None = None,
        *,
        long_input: str | None = None,
        split_sentences: str | None = None,
        as_flags: bool = False,
    ) -> SentenceReader:
        """Returns a `Reader` of texts: see `Answerer`, and `translate` for `split_sentences`."""
        return SentenceReader(self, max_length, long_input, split_sentences, as_flags)

    def answer(
        self,
        readings: Sequence,
        *,
        prefixes: Sequence | None = None,
        utility: str | None = None,
        on_progress: Callable[[int], object] | None = None,
        **options,
    ) -> list[Translation]:
        """Answers readings: see `Answerer`. If a `utility` is given, `translate_by_risk` is used."""
        method = functools.partial(self.translate_by_risk, utility=utility) if utility else self.translate
        translate = functools.partial(method, **options)
        translations = answer_parts(translate, readings, target_language(self.problem), prefixes, on_progress)
        return [*map(minimum_bayes_risk.with_mean_scores, translations)] if utility else translations

    def _translations(self, options, longest, requested, texts, prefixes=None, on_progress=None):
        """Translates each `SourceText`, but reads at most `longest` of its ids, not counting EOS."""
        sources = {at: text for at, text in enumerate(texts) if text.ids}  # a text of control characters has no ids
        nothing = [] if requested["token_scores"] else None
        translations = [Translation((Hypothesis(text.unchanged, token_scores=nothing),)) for text in texts]
        if on_progress and len(sources) < len(texts):
            on_progress(len(texts) - len(sources))
        rows = [[*source.ids[:longest], EOS_ID] for source in sources.values()]
        forced = prefixes and [prefixes[at] or [] for at in sources]
        results_of = self._search(rows, options, forced, on_progress)
        has_attention = requested["attention"] or requested["replaced"]
        fields = self._extra_fields(rows, results_of, has_attention, requested["token_scores"], requested["tellers"])
        encoder = self.encoders["inputs"]
        for (at, source), row, results in zip(sources.items(), rows, results_of, strict=True):
            pieces = encoder.pieces(row[:-1])
            spans = source.spans(encoder, row[:-1]) if has_attention else None
            reading = source, pieces, spans, requested["replaced"]
            hypotheses = tuple(self._hypothesis(result, options.stop, *reading, next(fields)) for result in results)
            is_short = ends_early(pieces, hypotheses[0].ids)
            translations[at] = Translation(hypotheses, len(source.ids) > longest, pieces, spans, is_short=is_short)
        return translations

    def read(self, text: str, max_input_length: int | None = None) -> SourceText:
        """Converts a text to a reading, which `translate` accepts in place of the text and does not split.

        Args:
            text: str.
            max_input_length: see `translate`.

        Raises:
            UserError: the length is out of range, or the vocabulary cannot encode the text.
        """
        text = valid_unicode(text)
        source = self.problem.source_text(text) if self.problem else SourceText(text, text)
        longest = self.checked_length(max_input_length) - 1  # leaves room for EOS
        ids = [] if source.is_blank else encode_beginning(self.encoders["inputs"], source.prepared, longest)
        return dataclasses.replace(source, ids=ids)

    def _hypothesis(self, result, stop, source, pieces, spans, replaces, fields):
        """Converts a search result for a `SourceText` to a Hypothesis, with spans if the source's spans are given."""
        encoder = self.encoders["targets"]
        if spans is None:
            whole = encoder.decode(result.ids)
            output, lost, _ = source.restored(pieces, before_stop(whole, stop))
            return self.hypothesis(source.prepared, result, stop, whole=whole, output=output, lost=lost, **fields)
        whole, places = decode_with_offsets(encoder, result.ids)
        output = before_stop(whole, stop)
        places = [(min(start, len(output)), min(end, len(output))) for start, end in places]
        if replaces:
            unknown = {at: encoder.decode([i]) for at, i in enumerate(result.ids) if i == encoder.unknown_id}
            output, places = replace_unknown(source.text, spans, output, places, unknown, fields["attention"])
        output, lost, places = source.restored(pieces, output, places)
        hypothesis = self.hypothesis(source.prepared, result, stop, whole=whole, output=output, lost=lost, **fields)
        return dataclasses.replace(hypothesis, spans=moved_spans(places, output, hypothesis.text))

    def translate_by_risk(
        self,
        texts: Sequence[str],
        *,
        utility: str = "chrf",
        num_samples: int = 32,
        tokenize: str | None = None,
        split_sentences: str | None = None,
        long_input: str | None = None,
        max_input_length: int | None = None,
        prefixes: Sequence | None = None,
        on_progress: Callable[[int], object] | None = None,
        **arguments,
    ) -> list[Translation]:
        """Samples translations and ranks them by minimum Bayes risk: the one most similar to all others comes first.

        See `t2t_lite.decoding.minimum_bayes_risk`.

        Args:
            texts: list of str.
            utility: "chrf" or "bleu", the measure of similarity.
            num_samples: int, the number of samples per text.
            tokenize: the tokenization for BLEU. The default is that of evaluations, which depends on the target
                language.
            split_sentences, long_input, max_input_length, prefixes, on_progress: see `translate`.
            **arguments: arguments of `translate`: temperature, top_k, top_p, seed and so on.

        Returns:
            list of `Translation`, in the order of `texts`, with all distinct samples, best first. Their scores are
            expected utilities, from 0 to 100; the score of a text that was split is the mean of its parts' scores.

        Raises:
            UserError: an option is out of range.
        """
        utility = typed_value("utility", utility, str, Choices(minimum_bayes_risk.UTILITIES))
        num_samples = typed_value("num_samples", num_samples, int, settings_of(SearchOptions)["n_best"].limits)
        tokenize = tokenize or tokenization_of_problem(self.problem, self.hparams)
        check_tokenization(tokenize)
        reader = SentenceReader(self, max_input_length, long_input, split_sentences)
        arguments |= {"max_input_length": reader.limit, "sampling": True, "n_best": num_samples}

        def ranked(sources, **options):
            samples = self.translate(sources, **arguments, **options)
            return [minimum_bayes_risk.ranked(one, utility, tokenize) for one in samples]

        readings = reader.read_all(texts, "sentence")
        translations = answer_parts(ranked, readings, target_language(self.problem), prefixes, on_progress)
        return [*map(minimum_bayes_risk.with_mean_scores, translations)]

    def score(
        self,
        texts: Sequence[str],
        targets: Sequence[str],
        *,
        batch_size: int = 16,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[TargetScore]:
        """Returns the log-probabilities that the model assigns to translations of texts, computed as in beam search.

        Args:
            texts: list of str.
            targets: list of str, one per text.
            batch_size: int, number of pairs per pass; it is reduced for pairs longer than 128 ids.
            on_progress: None, or a function called with the number of pairs in each finished batch.

        Returns:
            list of `TargetScore`.

        Raises:
            UserError: the numbers of texts and targets differ, or a text is too long for the model.
        """
        texts, targets = check_texts(texts), check_texts(targets, "targets")
        if len(texts) != len(targets):
            raise UserError(
                f"{counted(len(texts), 'text')}, but {counted(len(targets), 'target')}: expected one target per text."
            )
        pairs = each_located("sentence", self.pair_ids, texts, targets)
        return self.score_ids(pairs, batch_size=batch_size, on_progress=on_progress)

    def score_ids(
        self, pairs: Sequence, *, batch_size: int = 16, on_progress: Callable[[int], object] | None = None
    ) -> list[TargetScore]:
        """Scores `pair_ids` of texts and targets: see `score`. Raises `UserError` for an invalid pair of ids."""
        rows = id_pairs(pairs, [self.encoders[side].vocab_size for side in ("inputs", "targets")])
        sources, targets = ([row[side] for row in rows] for side in (0, 1))
        rows_of_scores = self._scorer(sources, targets, batch_size, on_progress)
        return [TargetScore(float(log_probs.sum()), log_probs.tolist()) for log_probs in rows_of_scores]

    def pair_ids(self, text: str, target: str) -> list[list[int]]:
        """Returns the ids of a text and of its target, each with EOS, for `score_ids`.

        Raises:
            UserError: the vocabulary cannot encode the text or the target, or one of them is too long for the model.
        """
        pair = []
        if is_natural(self.problem):  # as in `translate`
            text, target = text.strip(), target.strip()
        if self.problem:
            text, target = self.problem.encoded_text(text), self.problem.encoded_target(target, text)
        for side, what, words in (("inputs", "text", text), ("targets", "target", target)):
            ids = [*self.encoders[side].encode(words), EOS_ID]
            if len(ids) > self.max_input_length:
                raise UserError(
                    f"the {what} has {len(ids):,} ids, EOS included, but at most {self.max_input_length:,} ids can be "
                    "scored. Split the text, or remove it."
                )
            pair.append(ids)
        if self.searcher.joins_inputs and (length := sum(map(len, pair))) > self.searcher.max_length:
            raise UserError(
                f"the text and the target together have {length:,} ids, EOS included, but at most "
                f"{self.searcher.max_length:,} ids can be scored. Split them, or remove them."
            )
        return pair

    def translate_ids(self, inputs: Iterable, **options) -> list[list[int]]:
        """Translates sources given as ids and returns the ids of the translations.

        Args:
            inputs: list of lists of int as in records: each ends in EOS (1), and any ids after EOS are ignored. A row
                longer than the attribute `max_input_length` (1024, or fewer positions) is truncated.
            **options: `SearchOptions`.

        Returns:
            list of lists of int, the ids of the first hypothesis per input, without EOS.

        Raises:
            UserError: a row is not a list of int, an id is outside the vocabulary, or an option is out of range.
            TypeError: inputs is not a list, or an argument is unknown.
        """
        rows, longest = id_rows(inputs, self.encoders["inputs"].vocab_size), self.checked_length(None)
        sources = [[*ids[: longest - 1], EOS_ID] for ids in rows]
        return [results[0].ids for results in self._search(sources, self.search_options(options))]

    def _search(self, sources, options, prefixes=None, on_progress=None):
        """Returns at most n_best `Hypothesis` per source, best first, reranked if the problem does so."""
        if options.sampling or not (self.problem and self.problem.chooses_output):
            return self.searcher.search(sources, options, prefixes, on_progress)
        every = dataclasses.replace(options, n_best=options.beam_size)
        results_of = self.searcher.search(sources, every, prefixes, on_progress)
        source, target = self.encoders["inputs"], self.encoders["targets"]
        for ids, results in zip(sources, results_of, strict=True):
            outputs = [target.decode(result.ids) for result in results]
            text = source.decode([i for i in ids if i != EOS_ID])
            results.insert(0, results.pop(self.problem.choose_output(text, outputs, self.encoders)))
            del results[options.n_best :]
        return results_of

    def prefix_of(self, prefix, reading, limit, options):
        """Returns the ids of a prefix, given as a text or as ids; [] if there is nothing to translate.

        Args:
            prefix, options: see `prefix_ids`; SearchOptions.
            reading, limit: `TextParts`; int, the number of ids that are read from each part.
        """
        source, encoder = reading.sources[0], self.encoders["targets"]
        longest = self.searcher.longest_output(min(len(source.ids) + 1, limit), options)
        return source.ids and prefix_ids(encoder, source.target(prefix), longest, options.banned_texts)

    def _extra_fields(self, sources, results_of, return_attention, return_token_scores, tellers):
        """Yields a dict with the requested extra fields of `Hypothesis` for each result of each source."""
        inputs = [source for source, results in zip(sources, results_of, strict=True) for _ in results]
        outputs = [result.all_ids for results in results_of for result in results]
        fields = {}
        if return_token_scores:
            fields["token_scores"] = [log_probs.tolist() for log_probs in self._scorer(inputs, outputs)]
        if return_attention:
            weights = self._attention(inputs, outputs)
            fields["attention"] = [rows[:, : len(source)] for source, rows in zip(inputs, weights, strict=True)]
        if tellers:
            facts = {name: teller(inputs, outputs) for name, teller in tellers.items()}
            fields["told"] = [dict(zip(facts, values, strict=True)) for values in zip(*facts.values(), strict=True)]
        for at in range(len(outputs)):
            yield {name: values[at] for name, values in fields.items()}

    @functools.cached_property
    def _scorer(self):
        return token_log_probs(self.model, self.searcher.max_length if self.searcher.joins_inputs else None)

    @functools.cached_property
    def _attention(self):
        return memory_attention(self.model)

    def checked_length(self, length, name="max_input_length"):
        """Checks and returns the maximum number of input ids, EOS included: `length`; if None, the model's maximum.

        Raises:
            UserError: the length is not a positive integer, or exceeds the model's table of positions. The message
                begins with `name`.
        """
        if length is None:
            return self.max_input_length
        length = typed_value(name, length, int, Range(1, 2**20))
        if length > (longest := self.searcher.longest_input or length):
            rest = f", including the output's. Expected at most {longest}" if self.searcher.joins_inputs else ""
            raise UserError(f"{name}={length}: the model has only {self.searcher.max_length} positions{rest}.")
        return length
