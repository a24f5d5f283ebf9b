"""Streams texts from the language model of an export.

A SavedModel's signatures return only whole texts. An export also contains the Keras model with the same weights.
Streams run that model step by step.
"""

import threading
import typing

from t2t_lite import registry
from t2t_lite.decoding.answering import continuation
from t2t_lite.decoding.generator import Generator
from t2t_lite.errors import UserError
from t2t_lite.export.signatures import LARGEST_EXTRA_LENGTH
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.extras.serving.token_scores import TokenScorer, TokenTexts
from t2t_lite.runs.locating import find_run, read_facts
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.rows import longest_text
from t2t_lite.text.vocabulary import EOS_ID

_SHORTEN = "Shorten it, or export the model with a larger --decode_hparams=max_input_size=N."
_MOST_TRACED = 64  # combinations of settings, such as stop strings, whose traced steps are kept


class ServedPrompt(typing.NamedTuple):
    """A prompt of a request.

    Attributes:
        source: str, or list of ids, the argument of `ServedGenerator.stream`.
        text: str, the prompt as text.
        ids: list of int, without the id that `num_begin` counts; None if the ids are not needed.
        num_begin: int, 1 if the prompt was given as ids that begin with EOS, which marks the start of a text, else 0.
    """

    source: str | list
    text: str
    ids: list | None = None
    num_begin: int = 0


class ServedGenerator:
    """Continues prompts with the model of an export; thread-safe.

    Args:
        path: str, the export's folder.

    Attributes:
        options: SearchOptions, the export's options, but with one beam.
        most_tokens: int, the maximum number of ids that a request may ask for.
        longest_prompt: int, the maximum number of ids that are read from a prompt.
        token_texts: TokenTexts.

    Raises:
        UserError: t2t-exporter did not write the export, or its model is not a language model.
    """

    def __init__(self, path):
        facts = read_facts(path)
        problem = find_run(path).problem
        if (task := registry.task_of(problem)).answered_by != Generator.task.answered_by:
            raise UserError(
                f"{path}: --max_streams is only for language models, but the task of {problem.full_name} is "
                f"{task.name}. Remove the flag."
            )
        self._generator = Generator.load(path)
        self.options = SearchOptions(**{**facts["search"], "beam_size": 1})
        self.most_tokens = max(LARGEST_EXTRA_LENGTH, self.options.extra_length)  # as for `with_options`
        self.longest_prompt = facts["max_input_length"]
        self._encoder = self._generator.encoders["targets"]
        self.token_texts, self._scorer = TokenTexts(self._encoder), TokenScorer(self._generator.model)
        self._lock = threading.Lock()
        # Traces the first steps before requests arrive, with an id as prompt, because no text suits every vocabulary.
        for _ in self.stream([self._encoder.vocab_size - 1], 2, self.options):
            pass

    def stream(self, prompt, max_tokens, options):
        """Returns a GenerationStream that continues a prompt.

        Args:
            prompt: str or list of ids. If it exceeds the limit of the export's signatures, only its end is read.
            max_tokens: int, the maximum number of ids in the continuation.
            options: SearchOptions.

        Raises:
            Refusal: the vocabulary cannot encode the prompt.
        """
        longest = longest_text(self.longest_prompt) if isinstance(prompt, str) else self.longest_prompt
        end = prompt[-longest:]  # encoding a prompt of megabytes would take many seconds
        options = vars(options) | {"max_new_tokens": max_tokens, "max_prompt_length": self.longest_prompt}
        del options["extra_length"]
        with self._lock:
            try:
                stream = self._generator.stream(end, **options)
            except UserError as error:
                raise Refusal(f"prompt: {str(error).removeprefix('prompt 1: ')}") from None
            if self._generator.searcher.num_compiled >= _MOST_TRACED:  # clients may send any combination of settings
                self._generator.searcher.forget_functions()
        stream.truncated |= len(end) < len(prompt)
        return stream

    def read(self, prompt, needs_ids):
        """Returns the ServedPrompt for a prompt in a request.

        Args:
            prompt: str, or list of int.
            needs_ids: bool, whether the prompt's ids are needed, so that it must be read as a whole.

        Raises:
            Refusal: an id is not in the vocabulary, or the prompt is too long to be read as a whole.
        """
        is_text, most = isinstance(prompt, str), self.longest_prompt
        if is_text and not needs_ids:
            return ServedPrompt(prompt, prompt)
        if is_text and len(prompt) > longest_text(most):
            raise Refusal(f"prompt: {len(prompt):,} characters do not fit into {most:,} pieces. {_SHORTEN}")
        ids = self.ids_of(prompt)
        num_begin = 0 if is_text else int(ids[:1] == [EOS_ID])
        text, ids = prompt if is_text else self.token_texts.joined(ids), ids[num_begin:]
        if needs_ids and len(ids) > most:
            raise Refusal(f"prompt: {len(ids):,} ids are more than the {most:,} that can be read whole. {_SHORTEN}")
        return ServedPrompt(prompt if is_text else ids, text, ids, num_begin)

    def ids_of(self, prompt, name="prompt"):
        """Encodes a text, or checks a list of ids; returns the ids.

        Raises `Refusal` for ids outside the vocabulary; `name` is the field of the request.
        """
        try:
            return self._generator.ids_of(prompt)
        except UserError as error:
            raise Refusal(f"{name}: {error}") from None

    def scores(self, rows, count, on_progress=None):
        """Returns a RowScores for each row of ids: see `TokenScorer`."""
        return self._scorer(rows, min(count, self._encoder.vocab_size - 1), on_progress)

    def text_after(self, ids, i):
        """Returns the text that the id `i` adds to the text of the preceding `ids`."""
        return "" if i == EOS_ID else continuation(self._encoder, ids, [i])
