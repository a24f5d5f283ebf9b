# Nearest tests of: t2t_lite/decoding/search/loops.py

import dataclasses
import json
import logging.handlers
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.search import searcher as search
from t2t_lite.decoding.search.loops import use_a_thread_per_search
from t2t_lite.decoding.search.searcher import Searcher, bucket_rows, bucket_width, plan_batches
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.scripted import ScriptedModel, assert_found, numpy_search
from tests.processes import wait_for


def sources_of(count, longest=30, seed=0):
    draw = np.random.default_rng(seed)
    return [[*draw.integers(2, 11, draw.integers(0, longest)).tolist(), 1] for _ in range(count)]


@pytest.mark.slow
def test_results_come_in_the_order_of_the_sources():
    model, sources = ScriptedModel(spread=1.0), sources_of(21)
    found = Searcher(model).search(sources, SearchOptions(batch_size=4, extra_length=5))
    for source, results in zip(sources, found, strict=True):
        assert_found(results, numpy_search(model, source, len(source) + 5, 4, 0.6)[:1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1}, {"alpha": 2.0}, {"length_penalty": "power"}, {"ends": "top"}, {"extra_length": 1},
        {"n_best": 3},
    ],
    ids=str,
)  # fmt: skip
def test_each_option_reaches_the_search(eager, options):
    model, sources = ScriptedModel(spread=1.0), sources_of(12, longest=9)
    usual = {"beam_size": 3, "alpha": 1.0, "length_penalty": "gnmt", "ends": "any", "extra_length": 9, "n_best": 1}

    def expected(settings):
        alpha, extra = settings["alpha"], settings["extra_length"]
        more = {"kind": settings["length_penalty"], "n_best": settings["n_best"], "ends": settings["ends"]}
        return [numpy_search(model, s, len(s) + extra, settings["beam_size"], alpha, **more) for s in sources]

    wanted = expected(usual | options)
    best = [hypotheses[: options.get("n_best", 1)] for hypotheses in wanted]
    assert best != [hypotheses[: options.get("n_best", 1)] for hypotheses in expected(usual)], "not a test otherwise"
    found = Searcher(model).search(sources, SearchOptions(**usual | options))
    for results, hypotheses in zip(found, best, strict=True):
        assert_found(results, hypotheses)


@pytest.mark.slow
def test_sampling_shares_a_batch_with_fewer_sentences_the_more_it_draws(eager):
    """The cache grows with the samples."""
    sources, sizes = sources_of(16, longest=2), []
    for n_best in (1, 4, 8, 64):
        done = []
        options = SearchOptions(sampling=True, n_best=n_best, batch_size=8, extra_length=1)
        Searcher(ScriptedModel()).search(sources, options, on_progress=done.append)
        sizes.append(max(done))
    assert sizes == [8, 8, 4, 1]


@pytest.mark.slow
def test_batches_that_run_side_by_side_do_not_matter_to_each_other(monkeypatch):
    model, sources = ScriptedModel(spread=1.0), sources_of(40)
    options, done = SearchOptions(batch_size=2, extra_length=5, n_best=2), []
    together = Searcher(model).search(sources, options, on_progress=done.append)
    monkeypatch.setattr("t2t_lite.decoding.search.loops.os.cpu_count", lambda: 1)
    assert Searcher(model).search(sources, options) == together
    assert done == [2] * 20


def test_a_batch_that_fails_ends_the_search():
    class Failing(ScriptedModel):
        def encode(self, inputs):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Searcher(Failing()).search(sources_of(9), SearchOptions(batch_size=2))


class Awaited(ScriptedModel):
    """Is traced only when so many threads have `asked`, a list."""

    def __init__(self, threads, asked):
        super().__init__(spread=1.0)
        self.threads, self.asked = threads, asked

    def encode(self, inputs):
        wait_for(lambda: len(self.asked) == self.threads, 20)
        return super().encode(inputs)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["stream", "search"])
def test_threads_that_wait_for_a_trace_are_not_taken_for_retracing(call):
    """TensorFlow warns from the fifth on."""
    asked, logged = [], logging.handlers.BufferingHandler(1000)
    searcher = Searcher(Awaited(8, asked))
    options = SearchOptions(sampling=True, extra_length=3, compile=False)

    def ids(seed):
        asked.append(seed)
        if call == "stream":
            return [*searcher.stream([5, 1], dataclasses.replace(options, seed=seed))]
        return searcher.search([[5, 1]], dataclasses.replace(options, seed=seed))[0][0].ids

    tf.get_logger().addHandler(logged)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = [*pool.map(ids, range(8))]
    finally:
        tf.get_logger().removeHandler(logged)
    assert not [record for record in logged.buffer if "retracing" in record.getMessage()]
    assert found == [ids(seed) for seed in range(8)]


class Counting(ScriptedModel):
    """Counts how often it is traced, and how often with static shapes, which is for XLA."""

    traces = compiled = 0

    def encode(self, inputs):
        self.traces += 1
        self.compiled += None not in inputs.shape
        return super().encode(inputs)


@pytest.mark.slow
def test_small_inputs_are_not_compiled_and_large_ones_are(monkeypatch):
    monkeypatch.setattr(search, "BATCHES_TO_PAY", 3)
    model, sources = Counting(), [[2, 3, 1]] * 2
    searcher = Searcher(model)
    options = SearchOptions(batch_size=1, extra_length=2)
    searcher.search(sources, options)
    history = json.loads(json.dumps(searcher.history))
    assert model.compiled == 0
    searcher = Searcher(model)
    searcher.history = history  # goes on as the other one would
    for _ in range(2):  # batches that came before count
        searcher.search(sources, options)
        assert model.compiled == 1
    several = SearchOptions(batch_size=2, extra_length=2)
    for _ in range(4):
        searcher.search(sources, several)
    assert model.compiled == 1, "compiling batches gains nothing on a CPU"
    for compiled in (1, 1, 2):
        searcher.search(sources, dataclasses.replace(several, sampling=True))
        assert model.compiled == compiled, "of samples it does"


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [False, True])
def test_nothing_is_traced_twice(sampling):
    model = Counting()
    searcher = Searcher(model)
    for n in (1, 2, 3):
        numbers = {"temperature": n, "top_p": n / 4, "seed": n} if sampling else {"alpha": n / 3}
        options = SearchOptions(compile=False, sampling=sampling, extra_length=n, **numbers)
        searcher.search(sources_of(5, seed=n), options)
    assert model.traces == 1


@pytest.mark.slow
def test_present_weights_are_used():
    model = ScriptedModel()
    model.bias = tf.Variable(model.bias)
    searcher, sources = Searcher(model), [[2, 3, 1]]
    for compile in (False, True):
        options = SearchOptions(compile=compile, extra_length=3)
        model.bias.assign(50.0 * tf.one_hot(1, 11))
        assert searcher.search(sources, options)[0][0].ids == []
        model.bias.assign(50.0 * tf.one_hot(7, 11))
        assert set(searcher.search(sources, options)[0][0].ids) == {7}


@pytest.mark.slow
def test_outputs_end_at_the_last_position():
    sources = [[2, 3, 1], [2] * 9 + [1]]
    model = ScriptedModel(end_bias=-100.0, longest=12)
    model.max_length = 12
    for compile in (False, True):
        found = Searcher(model).search(sources, SearchOptions(extra_length=4, compile=compile))
        assert [len(results[0].ids) for results in found] == [7, 12]
        assert not found[0][0].ended
    model.joins_inputs = True
    assert Searcher(model).longest_input == 11, "one position at least is for the output"


def test_plan_batches():
    lengths = [3, 50, 7, 200, 3, 1000, 12]
    batches = plan_batches(lengths, batch_size=4)
    assert sorted(at for batch in batches for at in batch) == list(range(7))
    assert batches == [[5], [3, 1], [6, 2, 0, 4]]  # longest first; long ones have fewer companions
    assert plan_batches([], 4) == []


def test_buckets():
    assert [bucket_rows(n, 32) for n in (1, 2, 4, 5, 9, 17, 32)] == [1, 4, 4, 8, 16, 32, 32]
    assert bucket_rows(3, 2) == 2
    widths = {bucket_width(n) for n in range(1, 1025)}
    assert len(widths) <= 16 and max(widths) == 1024
    assert len({bucket_width(n) for n in range(1, 513)}) == 12  # so many are compiled
    assert all(n <= bucket_width(n) <= max(n + 7, 1.5 * n) for n in range(1, 1025))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"compile": False}, {"compile": True}, {"sampling": True}], ids=str)
def test_a_model_that_is_broken_still_has_an_answer(options):
    """Weights that became NaN in training must not stop the evaluation."""
    model = ScriptedModel()
    model.bias[:] = np.nan
    found = Searcher(model).search([[2, 1]] * 2, SearchOptions(extra_length=2, **options))
    assert [len(results) for results in found] == [1, 1] and not np.isfinite(found[0][0].score)


@pytest.mark.parametrize(
    ("cores", "asked", "chosen", "threads"), [(2, "", 0, [1]), (2, "", 3, []), (2, "5", 0, []), (4, "", 0, [])]
)
@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="about CPUs")
def test_searches_on_two_cores_have_a_thread_each(monkeypatch, cores, asked, chosen, threads):
    """Where nobody chose otherwise. It is no error that TensorFlow runs already."""
    told = []
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", asked)
    monkeypatch.setattr(tf.config.threading, "get_intra_op_parallelism_threads", lambda: chosen)
    with monkeypatch.context() as patch:
        patch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", told.append)
        use_a_thread_per_search()
    assert told == threads
    tf.constant(1)
    use_a_thread_per_search()
