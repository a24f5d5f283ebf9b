"""Searcher: runs searches of many sentences in batches, chooses the batch shapes, and decides when to use XLA."""

import dataclasses
import functools
import itertools
import math
import threading
import typing
import zlib

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.hypothesis import Hypothesis
from t2t_lite.decoding.search.adapters import check_own_search, decodable, own_search, refuse, searches
from t2t_lite.decoding.search.beam_search import beam_search
from t2t_lite.decoding.search.loops import side_by_side
from t2t_lite.decoding.search.rules import CONTINUES, rules_of, text_tables
from t2t_lite.decoding.search.sampling import sample, sample_step
from t2t_lite.decoding.texts import in_batches
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

# If sentences have more ids than this, batches are proportionally smaller, since the cache grows with the length and
# with the batch size.
_LONG = 128
# Number of batches of one shape after which that shape is compiled. Compiling takes about as long as it saves on this
# number of batches.
BATCHES_TO_PAY = 32


def longest_translation(length, options):
    """Returns the length of the longest translation as in tensor2tensor: the input's length plus `extra_length`."""
    return length + options.extra_length


class Searcher:
    """Runs `beam_search`, `sample` or the model's own search on lists of ids.

    Create a Searcher once, since it keeps traced and compiled functions. The weights are read at every call, so the
    model may still be training.

    Args:
        model: a model with the decoding interface, or a plain model, for which every step is a full pass. The model's
            attribute `max_length`, if not None, is the maximum number of positions of inputs and of outputs, or of both
            together if it `joins_inputs`.
        longest_output: function of an input's length and SearchOptions that returns the length of the longest output.
            It must be monotonic in the input's length.
        end_id: int, the id that ends an output, or None if outputs end only at their limit.
        continues_inputs: bool, whether outputs continue their inputs, as in a language model. If so, rules against
            repetition also consider the ids of the inputs.
        encoder: TextEncoder of the outputs, needed for `SearchOptions.stop` and `banned_texts`; or None.

    Attributes:
        history: {name of a shape: number of batches so far}, a JSON value. The numbers determine which batches are
            compiled, which affects the last digits of scores. A searcher that is given the history of another searcher
            continues exactly like it.
    """

    def __init__(self, model, longest_output=longest_translation, end_id=EOS_ID, continues_inputs=False, encoder=None):
        self._searches = searches(model)
        self.model = model if self._searches else decodable(model)
        self.max_length = getattr(model, "max_length", None)
        self.joins_inputs = self.max_length is not None and getattr(model, "joins_inputs", False)
        self.longest_input = self.max_length and self.max_length - self.joins_inputs  # leaves room for one id of output
        self._longest_output = longest_output
        self._end_id = end_id
        self._continues_inputs = continues_inputs
        self._encoder = encoder
        self._graphs = {}  # {(method, its options, names of its tensors): function for any shape}
        self._compiled = {}  # {_Shape: function for this shape}
        self._making = threading.Lock()  # a lock, since two threads may need the same function
        self.history = {}

    @property
    def num_compiled(self):
        """The number of shapes for which functions are kept that were compiled, or traced for streams."""
        return len(self._compiled)

    def forget_functions(self):
        """Frees all traced and compiled functions, which are kept for every combination of settings."""
        with self._making:
            self._graphs, self._compiled = {}, {}

    def search(self, sources, options, prefixes=None, on_progress=None):
        """Searches every source.

        Args:
            sources: list of lists of ids. The inputs of a translation model must end in EOS; the prompts of a language
                model need not.
            options: SearchOptions.
            prefixes: None, or a list with the ids of the forced beginning of each source's output: see
                `decoding.texts.prefix_ids`.
            on_progress: None, or a function called with the number of sentences in each finished batch.

        Returns:
            A list of at most n_best `Hypothesis` for each source, best first. The list is shorter if fewer hypotheses
            finished within the limit. With `options.sampling`, the list has all n_best samples, in the order of
            sampling.

        Raises:
            UserError: the model's own search does not support the options.
        """
        prefixes = prefixes or [[]] * len(sources)
        if self._searches:
            check_own_search(self.model, options, prefixes)
        batches = plan_batches([len(source) for source in sources], _sentences_a_batch(options))
        keys = [
            self._key([len(sources[at]) for at in batch], [len(prefixes[at]) for at in batch], options)
            for batch in batches
        ]
        for key in keys:
            self.history[key.name] = self.history.get(key.name, 0) + 1

        def run(batch, key):
            compiled = self._should_compile(key, options)
            rows, width = (key.rows, key.width) if compiled else (len(batch), max(1, len(sources[batch[0]])))
            batch = [(sources[at], prefixes[at]) for at in batch]
            tensors = self._tensors(batch, rows, width, key.prefix_width, options)
            function = self._compiled_function(key) if compiled else self._graph_function(key, tensors)
            return _results(_traced(function, tensors)(tensors), options.n_best, self._end_id)

        hypotheses_of = [None] * len(sources)
        for batch, results in zip(batches, side_by_side(run, batches, keys), strict=True):
            for at, hypotheses in zip(batch, results, strict=False):
                hypotheses_of[at] = hypotheses
            if on_progress:
                on_progress(len(batch))
        return hypotheses_of

    def search_by(self, method, source, options, prefix=()):
        """Searches one source with a function other than `beam_search`, without XLA.

        Args:
            method: function with the arguments of `beam_search` that returns (SearchResult, additional tensors).
            source: list of ids, see `search`.
            options: SearchOptions, without sampling.
            prefix: list of ids, see `search`.

        Returns:
            (list of `Hypothesis`, see `search`; the additional tensors).
        """
        key = dataclasses.replace(self._key([len(source)], [len(prefix)], options), method=method)
        tensors = self._tensors([(source, prefix)], 1, max(1, len(source)), len(prefix), options)
        result, more = _traced(self._graph_function(key, tensors), tensors)(tensors)
        return _results(result, options.n_best, self._end_id)[0], more

    def stream(self, source, options):
        """Samples one output, or searches greedily, step by step, without XLA.

        Args:
            source: list of ids, see `search`.
            options: SearchOptions; without sampling the search is greedy.

        Yields:
            The ids that `search` would return, int, one by one.

        Raises:
            UserError: the model uses its own search.
        """
        if self._searches:
            refuse(self.model, "streaming an output")
        if not options.sampling:
            options = dataclasses.replace(options, sampling=True, temperature=0.0, top_k=0, top_p=1.0)
        options = dataclasses.replace(options, n_best=1)
        key = dataclasses.replace(self._key([len(source)], [0], options), method=sample_step)
        tensors = self._tensors([(source, [])], 1, key.width, 0, options)
        function, state, is_open = self._compiled_function(key), None, True
        for num_steps in itertools.count():
            arguments = {**tensors, "state": state}
            if num_steps < 2:  # the first step has no state yet; the states of all later steps have the same shape
                step = _traced(function, arguments)
            state, is_open = step(arguments)
            if (i := int(state.ids[0, 0])) != self._end_id:
                yield i
            if not is_open:
                return

    def _tensors(self, batch, rows, width, prefix_width, options):
        """Returns {name: tensor}, the arguments of a search for pairs of a source and its prefix."""
        inputs = np.full((rows, width), PAD_ID, "int32")
        inputs[len(batch) :, 0] = EOS_ID  # padding rows have limit 0 and take no steps
        limit = np.zeros(rows, "int32")
        prefixes = np.full((rows, prefix_width), PAD_ID, "int32")
        for row, (source, prefix) in enumerate(batch):
            inputs[row, : len(source)] = source
            prefixes[row, : len(prefix)] = prefix
            limit[row] = self.longest_output(len(source), options)
        rules = text_tables(self._encoder, options)
        if rules and self._continues_inputs:
            states = [0 if source[-1:] in ([], [EOS_ID]) else CONTINUES for source, _ in batch]
            rules["states"] = np.array(states + [0] * (rows - len(batch)), "int32")
        numbers = {name: np.float32(value) for name, value in options.numbers().items()}
        if "repetition_penalty" in numbers:
            rules["repetition_penalty"] = numbers.pop("repetition_penalty")
        arrays = {"inputs": inputs, "limit": limit, "rules": rules, **numbers}
        if prefix_width:
            arrays["prefix"] = prefixes
        if options.sampling:
            arrays["seeds"] = _seeds([source for source, _ in batch], rows, options.seed)
        return tf.nest.map_structure(tf.constant, arrays)

    def longest_output(self, length, options):
        """Returns the maximum number of ids of an output for a source of `length` ids; both numbers include EOS."""
        longest = self._longest_output(length, options)
        return longest if self.max_length is None else min(longest, self.max_length - length * self.joins_inputs)

    def _key(self, lengths, prefix_lengths, options):
        """Returns the shape for which a batch of sentences with these lengths (longest first) is compiled."""
        width = bucket_width(lengths[0])
        longest = max(self._longest_output(length, options) for length in (0, width))
        if self.max_length is not None:
            longest, width = min(longest, self.max_length), min(width, self.max_length)
        longest_prefix = max(prefix_lengths)
        return _Shape(
            rows=bucket_rows(len(lengths), rows_of(width, _sentences_a_batch(options))),
            width=width,
            max_length=-(-longest // 8) * 8,
            prefix_width=bucket_width(longest_prefix) if longest_prefix else 0,
            method=own_search if self._searches else sample if options.sampling else beam_search,
            options=SearchOptions() if self._searches else options.traced(),
            numbers=tuple(options.numbers()),
            texts=(options.stop, options.banned_texts),
        )

    def _should_compile(self, key, options):
        if options.compile is not None:
            return options.compile
        # On a CPU the uncompiled search of several sentences is faster, since it drops decided sentences.
        gains = key.rows == 1 or key.method is sample or bool(tf.config.list_logical_devices("GPU"))
        return key in self._compiled or (gains and self.history.get(key.name, 0) >= BATCHES_TO_PAY)

    def _graph_function(self, key, tensors):
        settings = (key.method, key.options, *tensors, *tensors["rules"])
        with self._making:
            if settings not in self._graphs:
                signature = tf.nest.map_structure(lambda t: tf.TensorSpec([None] * t.shape.rank, t.dtype), tensors)
                search = functools.partial(self._search, key, None)
                self._graphs[settings] = tf.function(search, input_signature=[signature], autograph=False)
            return self._graphs[settings]

    def _compiled_function(self, key):
        with self._making:
            if key not in self._compiled:
                search, is_step = functools.partial(self._search, key, key.max_length), key.method is sample_step
                self._compiled[key] = tf.function(search, jit_compile=not is_step, autograph=False)
            return self._compiled[key]

    # Called as a partial, since TensorFlow identifies functions by their code and would warn about repeated tracing.
    def _search(self, key, max_length, tensors):
        prompts = tensors["inputs"] if self._continues_inputs else None
        extras = {"rules": rules_of(key.options, **tensors["rules"], prompts=prompts), "end_id": self._end_id}
        return key.method(self.model, options=key.options, max_length=max_length, **tensors | extras)


def _traced(function, *arguments):
    """Returns a tf.function's trace for some arguments, or the function itself if functions run eagerly.

    If a tf.function is called in one thread while it is being traced in another, TensorFlow warns about retracing; a
    trace avoids this. Calling the trace is also faster: a step of a small model took 4.5 ms instead of 7.9 ms.
    """
    return function if tf.config.functions_run_eagerly() else function.get_concrete_function(*arguments)


@dataclasses.dataclass(frozen=True)
class _Shape:
    """The static properties of a compiled search."""

    rows: int
    width: int
    max_length: int
    prefix_width: int
    method: typing.Callable  # beam_search, sample or own_search
    options: SearchOptions  # SearchOptions that are constants in the graph
    numbers: tuple  # names of options that are scalar tensors
    texts: tuple  # stop strings and banned texts

    @property
    def name(self):
        """A description of the shape that is the same in every process."""
        return str({**vars(self), "method": self.method.__name__, "options": self.options.changes()})


def _sentences_a_batch(options):
    """Returns `batch_size`, reduced for more than 4 samples or 32 beams per sentence, which enlarge the cache."""
    rows, usual = (options.n_best, 4) if options.sampling else (options.beam_size, 32)
    return max(1, options.batch_size * usual // max(rows, usual))


def _seeds(sources, rows, seed):
    """Returns seeds, int32 [rows, 2]. Each seed consists of the option `seed` and a hash of the sentence."""
    seeds = np.zeros((rows, 2), "uint32")
    for row, source in enumerate(sources):
        seeds[row] = seed, zlib.crc32(np.array(source, "int32").tobytes())
    return seeds.view("int32")


def plan_batches(lengths, batch_size):
    """Forms batches of sentences of similar length, longest first, so that batches that are too large fail immediately.

    Args:
        lengths: list of int, ids per sentence.
        batch_size: int, number of sentences per batch; it is reduced for sentences longer than 128 ids.

    Returns:
        list of lists of indices of `lengths`; each list begins with its longest sentence.
    """
    return [*in_batches(lengths, lambda longest: rows_of(bucket_width(longest), batch_size), lambda length: -length)]


def rows_of(width, batch_size):
    """Returns how many sentences of `width` ids are put into a batch."""
    return max(1, min(batch_size, batch_size * _LONG // width))


def bucket_rows(count, most):
    """Returns the number of rows to which `count` sentences are padded: 1, 4, 8, 16, 32…, but at most `most`."""
    rows = 1 if count == 1 else max(4, 2 ** math.ceil(math.log2(count)))
    return min(rows, most)


def bucket_width(length):
    """Returns the width to which `length` ids are padded: 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, …

    Each width is compiled separately, so there are only twelve widths up to 512. Padding costs little, because only the
    encoder reads it.
    """
    length = max(length, 1)  # at least 1, for an empty prompt
    step = max(8, 2 ** math.ceil(math.log2(length)) // 4)
    return -(-length // step) * step


def _results(result, n_best, end_id):
    """Converts a SearchResult to a list of at most n_best `Hypothesis` for each row."""
    return [
        [
            Hypothesis(
                ids=[int(i) for i in row if i not in (PAD_ID, end_id)],
                score=float(score),
                ended=bool(end),
                stopped=bool(end) and end_id not in row,
            )
            for rank, (row, score, end) in enumerate(zip(ids, scores, ended, strict=True))
            if score > -np.inf or rank == 0  # also excludes NaN from a broken model
        ]
        for ids, scores, ended in zip(*(tensor.numpy()[:, :n_best] for tensor in result), strict=True)
    ]
