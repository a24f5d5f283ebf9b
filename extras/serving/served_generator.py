"""Streams texts from the language model of an export.

A SavedModel's signatures return only whole texts. Streams therefore use the Keras model with the same weights, which is
also part of an export, and run it step by step.
"""

import threading

from t2t_lite import registry
from t2t_lite.decoding.generator import Generator
from t2t_lite.decoding.search.searcher import bucket_width
from t2t_lite.errors import UserError
from t2t_lite.extras.serving.model_versions import load_export
from t2t_lite.runs.locating import find_run, read_facts
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.rows import longest_text

MOST_TOKENS = 512  # limit per request unless the export's is larger, as in `with_options`
_MOST_TRACED = 64  # maximum number of combinations of settings whose traced steps are kept


def load_with_generator(path):
    """Loads the export at a path, and returns its ServedExport with a `generator`. Raises `UserError`."""
    generator = ServedGenerator(path)
    export = load_export(path)
    export.generator = generator
    return export


class ServedGenerator:
    """Continues prompts with the model of an export; thread-safe.

    Args:
        path: str, the export's folder.

    Attributes:
        options: SearchOptions, the export's options, but with one beam.
        most_tokens: int, the maximum number of ids that a request may ask for.

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
        self.most_tokens = max(MOST_TOKENS, self.options.extra_length)
        self._longest_prompt = facts["max_input_length"]
        self._traced, self._lock = set(), threading.Lock()
        for _ in self.stream("a", 2, self.options):
            pass  # traces the first steps

    def stream(self, prompt, max_tokens, options):
        """Returns a GenerationStream that continues a prompt.

        Args:
            prompt: str, of which only the last pieces are read, up to the limit of the export's signatures.
            max_tokens: int, the maximum number of ids in the continuation.
            options: SearchOptions.
        """
        end = prompt[-longest_text(self._longest_prompt) :]  # encoding megabytes takes many seconds
        options = vars(options) | {"max_new_tokens": max_tokens, "max_prompt_length": self._longest_prompt}
        del options["extra_length"]
        with self._lock:
            stream = self._generator.stream(end, **options)
            self._limit_traces(bucket_width(len(stream.prompt_ids)), options)
        stream.truncated |= len(end) < len(prompt)
        return stream

    def _limit_traces(self, width, options):
        """Drops all traced steps if there are too many, because clients may send any combination of settings."""
        names = ("sampling", "top_k", "no_repeat_ngram_size")
        rules = options["top_p"] < 1, options["repetition_penalty"] != 1
        traced = (width, bucket_width(options["max_new_tokens"]), *map(options.get, names), *rules)
        if traced not in self._traced and len(self._traced) >= _MOST_TRACED:
            self._traced.clear()
            self._generator.renew_searcher()
        self._traced.add(traced)
