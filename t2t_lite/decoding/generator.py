"""Generator: continues texts with a trained language model, whole or as a stream, and scores texts."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from t2t_lite.decoding.answering import Reader, TextModel, continuation
from t2t_lite.decoding.hypothesis import Hypotheses, Hypothesis, Prompt
from t2t_lite.decoding.scoring import GivenTargets, TargetScore, log_probs_of_targets, token_log_probs
from t2t_lite.decoding.search.rules import before_stop
from t2t_lite.decoding.search.searcher import bucket_width
from t2t_lite.decoding.texts import check_ids, valid_unicode
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import EXTRA_LENGTH, NEW_TOKENS, Range, typed_value
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.tasks.task import LanguageModelTask

_MOST_INCOMPLETE = 3  # maximum number of bytes of an incomplete UTF-8 character


class GenerationStream(Iterator[str]):
    """An iterator over the parts of a continuation, str: see `Generator.stream`.

    Parts are computed only when they are requested.

    Args:
        generator: TextModel, the Generator.
        prompt: Prompt.
        options: SearchOptions of a greedy search or of one sample.

    Attributes:
        prompt_ids: list of int, the ids of the prompt that the model reads.
        truncated: bool, whether the beginning of the prompt was dropped: see `Generation`.
        ids: list of int, the ids generated so far, without EOS.
        text: str, the text so far: all parts joined.
        ended: bool, whether the model or a stop string has ended the continuation. If it is False at the end of the
            stream, the maximum length was reached.
        stop: str, the stop string that ended the continuation, or None.
    """

    def __init__(self, generator: TextModel, prompt: Prompt, options: SearchOptions):
        self.prompt_ids, self.truncated = prompt.ids, prompt.truncated
        self.ids, self.text, self.ended, self.stop = [], "", False, None
        self._generator, self._prompt, self._stops = generator, prompt, options.stop
        self._longest = generator.searcher.longest_output(len(prompt.ids), options)
        # Round the length and remove stop strings; otherwise the function would be retraced for each new length and
        # stop string.
        length = min(bucket_width(options.extra_length), int(EXTRA_LENGTH.most))
        options = dataclasses.replace(options, stop=(), extra_length=max(length, options.extra_length))
        # `output_text` may return any text for an output, so the text of an unfinished output may still change.
        self._is_plain = not (generator.problem and generator.problem.overrides("output_text"))
        self._ids = itertools.islice(generator.searcher.stream(prompt.ids, options), self._longest)

    def __next__(self) -> str:
        while not (part := self.step()):
            if part is None:
                raise StopIteration
        return part

    def step(self) -> str | None:
        """Generates one id. Returns the new text that later ids cannot change (possibly ""), or None after the end."""
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
        """Stops the stream and frees its cache."""
        self._ids = None

    def _end(self):
        """Decodes the whole continuation and records why it ended."""
        prompt, ended = self._prompt, len(self.ids) < self._longest
        result = Hypothesis(ids=self.ids, ended=ended)
        end = self._generator.hypothesis(prompt.text, result, self._stops, prompt.ids)
        self.ended, self.stop = end.ended, first_stop(self._continuation(self.ids), self._stops)
        return end.text

    def _add(self, text):
        """Sets `text`, the text so far, and returns the part that is new."""
        part = text[len(self.text) :]
        self.text += part
        return part

    def _certain(self):
        """Returns the beginning of the continuation that no further id can change."""
        settled = self._generator.encoders["targets"].num_settled(self.ids)
        text = self._continuation(self.ids[:settled])
        # Each byte of an incomplete character at the end may decode to U+FFFD. An earlier U+FFFD stands for an invalid
        # byte and cannot change.
        text = text[: max(len(text.rstrip("\ufffd")), len(text) - _MOST_INCOMPLETE)]
        if (stop := first_stop(text, self._stops)) is not None:
            self.stop, self.ended = stop, True
            return before_stop(text, self._stops)
        return text[: len(text) - _beginning_of_stop(text, self._stops)]

    def _continuation(self, ids):
        return continuation(self._generator.encoders["targets"], self._prompt.ids, ids)


def first_stop(text, stops):
    """Returns the stop string before which `before_stop` cuts a text, or None."""
    return min((stop for stop in stops if stop in text), key=text.find, default=None)


def _beginning_of_stop(text, stops):
    """Returns how many characters at the end of a text may be the beginning of a stop string."""
    lengths = (n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n]))
    return max(lengths, default=0)


@dataclasses.dataclass(frozen=True)
class Generation(Hypotheses):
    """The continuations of one prompt.

    Attributes:
        hypotheses: tuple of one to n_best `Hypothesis`, best first, or samples in the order of sampling. Their texts do
            not include the prompt.
        truncated: bool, whether the beginning of the prompt was dropped because the prompt was longer than
            `max_prompt_length`.
        prompt_tokens: list of str, the pieces of the prompt that were read.
        text, score, tokens, ids: attributes of the first hypothesis.
    """

    prompt_tokens: list[str] = dataclasses.field(default_factory=list)

    @property
    def ids(self) -> list[int]:
        """The ids of the first hypothesis, without EOS."""
        return self.hypotheses[0].ids


class PromptReader(Reader):
    """Converts prompts to `Prompt` for a Generator. Long prompts are refused, or only their ends are read.

    Args:
        generator: the Generator.
        max_prompt_length, long_input: see `Generator.generate`.
        as_flags: see `Reader`.
    """

    taken = (Prompt, list, tuple, np.ndarray)

    def __init__(self, generator, max_prompt_length=None, long_input=None, as_flags=False):
        limit = None if generator.max_length is None else generator.max_length - 1
        name, self._advice = "max_input_size" if as_flags else "max_prompt_length", ""
        if max_prompt_length is not None:
            limit = typed_value(name, max_prompt_length, int, Range(1, limit))
        else:  # the end of a prompt that is cut at the model's limit leaves room for a single id
            self._advice = f"set {name} below that to leave room for the continuation, "
        long_input = long_input or ("refuse" if max_prompt_length is None else "truncate")
        super().__init__(generator, limit, long_input, as_flags, choices=("truncate", "refuse"))

    def read(self, text):
        """Reads a prompt, which may also be a list of ids: see `Reader`."""
        if isinstance(text, Prompt):
            return text
        ids = self.answerer.ids_of(text)
        is_long = self.limit is not None and len(ids) > self.limit
        if is_long and self.long_input == "refuse":
            raise UserError(
                f"{len(ids):,} pieces, more than {self.limit:,}. Shorten the prompt, {self._advice}or read only its "
                f"end with {self.argument}=truncate."
            )
        text = text if isinstance(text, str) else self.answerer.encoders["targets"].decode(ids)
        return Prompt(text, ids[-self.limit :] if is_long else ids, is_long)


class ScoredReader(PromptReader):
    """Converts texts to be scored by a Generator to lists of ids; refuses texts that are too long for the model."""

    def __init__(self, generator):
        Reader.__init__(self, generator, generator.max_length, "refuse")

    def read(self, text):
        """Returns the ids of a text, which may also be a list of ids: see `Reader`."""
        ids = self.answerer.ids_of(text)
        if len(ids) > (self.limit or len(ids)):
            raise UserError(f"{len(ids):,} ids, but the model can score at most {self.limit:,}. Split the text.")
        return ids


class Generator(TextModel):
    """Continues texts. Create a Generator once and call it often, since it keeps traced and compiled functions.

    Args:
        model: a language model whose inputs are prompts; for its optional methods see
            `t2t_lite.decoding.search.beam_search`.
        encoders: {"targets": TextEncoder}.
        hparams: HParams of the model.
        problem: the Problem, or None.

    Attributes:
        max_length: int, the maximum number of ids of a prompt with its continuation, or None for no limit.

    Example:
        >>> generator = t2t_lite.Generator.load("train/stories")                                  # doctest: +SKIP
        >>> generator.generate(["Once upon"], sampling=True, top_k=50, seed=1)[0].text            # doctest: +SKIP
        ' a time there was a king.'
    """

    task, method = LanguageModelTask, "generate"

    def __init__(self, model, encoders, hparams, problem=None):
        self.max_length = getattr(model, "max_length", None)
        super().__init__(model, encoders, hparams, problem, longest_output=self._longest_output, continues_inputs=True)

    def generate(
        self,
        texts: Sequence,
        *,
        max_new_tokens: int = SearchOptions.extra_length,
        max_prompt_length: int | None = None,
        long_input: str | None = None,
        return_token_scores: bool = False,
        on_progress: Callable[[int], object] | None = None,
        **options,
    ) -> list[Generation]:
        """Continues texts. An empty prompt starts a new text.

        Args:
            texts: list of prompts, each a str, a list of ids, or a reading of the `reader`.
            max_new_tokens: int, maximum number of ids in a continuation, EOS included. If prompt and continuation would
                exceed `max_length`, the continuation is cut off there, and its `ended` is False. If all examples of the
                problem have the same length, such as images of one size, the continuation always fills this length.
            max_prompt_length: int, maximum number of ids of a prompt. Default: `max_length` - 1.
            long_input: "truncate" reads only the end of a longer prompt; "refuse" raises an error. Default: "truncate"
                if `max_prompt_length` is given, or else "refuse".
            return_token_scores: bool, whether hypotheses get `token_scores`, which costs one more pass.
            on_progress: None, or a function called with the number of prompts in each finished batch.
            **options: options of `SearchOptions` except extra_length: beam_size (1 for greedy search), alpha, n_best,
                no_repeat_ngram_size, stop and so on, or sampling=True with temperature, top_k, top_p and seed.

        Returns:
            list of `Generation`, in the order of `texts`. Prompts do not influence one another.

        Raises:
            UserError: an option is out of range, a prompt is too long, or an id is not in the vocabulary.
        """
        options = self._options(options, max_new_tokens)
        prompts = self.reader(max_prompt_length, long_input=long_input).read_all(texts, "prompt")
        results_of = self.searcher.search([prompt.ids for prompt in prompts], options, on_progress=on_progress)
        scores = self._token_scores(prompts, results_of) if return_token_scores else itertools.repeat(None)
        return [
            Generation(
                tuple(
                    self.hypothesis(prompt.text, result, options.stop, prompt.ids, token_scores=next(scores))
                    for result in results
                ),
                prompt.truncated,
                self.encoders["targets"].pieces(prompt.ids),
            )
            for prompt, results in zip(prompts, results_of, strict=True)
        ]

    def stream(
        self,
        text: str | list[int],
        *,
        max_new_tokens: int = SearchOptions.extra_length,
        max_prompt_length: int | None = None,
        long_input: str | None = None,
        **options,
    ) -> GenerationStream:
        """Continues one text and streams the continuation: each part is returned as soon as later ids cannot change it.

        Args:
            text: str, list of ids, or a reading of the `reader`.
            max_new_tokens, max_prompt_length, long_input, **options: see `generate`. The options must request sampling
                or beam_size=1.

        Returns:
            `GenerationStream`, an iterator of str. The parts together are the text that `generate` returns. After the
            last part, the stream's attributes `ended` and `stop` show why the text ended.

        Raises:
            UserError: more than one beam or sample is requested; also in the cases of `generate`.
        """
        options = self._options(options, max_new_tokens)
        if options.n_best != 1 or not (options.sampling or options.beam_size == 1):
            raise UserError(
                "stream: expected sampling or beam_size=1, and n_best=1. Other outputs cannot be streamed, because "
                "they are only known at the end of the search."
            )
        (prompt,) = self.reader(max_prompt_length, long_input=long_input).read_all([text], "prompt")
        return GenerationStream(self, prompt, options)

    def encode(self, text: str) -> list[int]:
        """Encodes a prompt or a text. Raises `UserError` if the vocabulary cannot encode it."""
        text = valid_unicode(text)
        return self.encoders["targets"].encode(self.problem.input_text(text) if self.problem else text)

    def ids_of(self, text: str | Sequence[int]) -> list[int]:
        """Returns the ids of the given text; a list of ids is returned unchanged.

        Raises:
            UserError: the vocabulary cannot encode the text, or an id is invalid.
        """
        return self.encode(text) if isinstance(text, str) else check_ids(text, self.encoders["targets"].vocab_size)

    def score(
        self, texts: Sequence, *, batch_size: int = 16, on_progress: Callable[[int], object] | None = None
    ) -> list[TargetScore]:
        """Returns the log-probability of every id of each text, given the preceding ids.

        The first id is predicted from the input with which the model starts a text. EOS is not scored.

        Args:
            texts: list of texts, each a str or a list of ids.
            batch_size: int, number of texts per pass; it is reduced for texts longer than 128 ids.
            on_progress: None, or a function called with the number of texts in each finished batch.

        Returns:
            list of one `TargetScore` per text. The `TargetScore` of an empty text has no `token_log_probs`.

        Raises:
            UserError: a text is too long for the model, or an id is not in the vocabulary.
        """
        every = ScoredReader(self).read_all(texts)
        some = [ids for ids in every if ids]
        rows = iter(self._scorer([[]] * len(some), some, batch_size, on_progress))
        log_probs = [next(rows) if ids else np.zeros(0) for ids in every]
        if on_progress and len(some) < len(every):
            on_progress(len(every) - len(some))
        return [TargetScore(float(row.sum()), row.tolist()) for row in log_probs]

    def _options(self, given, max_new_tokens):
        """Returns the SearchOptions."""
        if "extra_length" in given:
            raise TypeError(f"{self.method}() has no argument `extra_length`. Expected max_new_tokens.")
        length = typed_value("max_new_tokens", max_new_tokens, int, NEW_TOKENS)
        return dataclasses.replace(self.search_options(given), extra_length=length)

    def _longest_output(self, length, options):
        """Returns the maximum number of ids that may follow a prompt of `length` ids."""
        whole = self.problem and self.problem.example_length(self.encoders)
        longest = whole - length if whole else options.extra_length
        return max(0, longest if self.max_length is None else min(longest, self.max_length - length))

    def reader(
        self, max_length: int | None = None, *, long_input: str | None = None, as_flags: bool = False
    ) -> PromptReader:
        """See `Answerer`."""
        return PromptReader(self, max_length, long_input, as_flags)

    def _token_scores(self, prompts, results_of):
        """Yields, for each result of each prompt, a list of its ids' log-probabilities, EOS included."""
        inputs = [prompt.ids for prompt, results in zip(prompts, results_of, strict=True) for _ in results]
        outputs = [result.all_ids for results in results_of for result in results]
        return (scores.tolist() for scores in self._continuation_scorer(inputs, outputs))

    @functools.cached_property
    def _scorer(self):
        return GivenTargets(lambda inputs, targets: log_probs_of_targets(self.model, None, targets))

    @functools.cached_property
    def _continuation_scorer(self):
        return token_log_probs(self.model, self.max_length)
