"""Decoding in bfloat16: near float32, on machines that are fast in it."""
# Nearest tests of: t2t_lite/decoding/answering.py, t2t_lite/decoding/bfloat16.py

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.bfloat16 import usable_dtype
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.runs.weights import named_weights
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.runs import SENTENCES

_ERROR = 0.05  # nats per id


@pytest.fixture(scope="module")
def translators(run_dir):
    """In bfloat16, and in float32 with the same weights, which are rounded."""
    low = Translator.load(str(run_dir), compute_dtype="bfloat16", check_device=False)
    exact = Translator.load(str(run_dir), compute_dtype="float32")
    for name, weight in named_weights(exact.model).items():
        weight.assign(tf.cast(tf.cast(weight.value, tf.bfloat16), tf.float32))
        np.testing.assert_array_equal(tf.cast(named_weights(low.model)[name].value, tf.float32), weight.numpy())
    return low, exact


@pytest.mark.slow
def test_scores_are_near_those_of_float32(translators):
    targets = SENTENCES[1:] + SENTENCES[:1]
    low, exact = (
        [log_prob for score in translator.score(SENTENCES, targets) for log_prob in score.token_log_probs]
        for translator in translators
    )
    np.testing.assert_allclose(low, exact, atol=_ERROR)
    assert np.std(exact) > 10 * _ERROR


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.long)], ids=["graph", "xla"])
def test_a_batch_of_one_is_a_batch_of_many(translators, compiled):
    model, encoder = translators[0].model, translators[0].encoders["inputs"]
    sources = [[*encoder.encode(sentence), 1] for sentence in SENTENCES[:6]]
    searcher, options = Searcher(model), {"extra_length": 4, "compile": compiled}
    many = searcher.search(sources, SearchOptions(batch_size=6, **options))
    for found, (one,) in zip(many, searcher.search(sources, SearchOptions(batch_size=1, **options)), strict=True):
        assert found[0].score == pytest.approx(one.score, abs=_ERROR * (len(one.ids) + 1))


def test_weights_are_not_cast_in_the_search(translators):
    """Each one is read as it is, and no kernel is converted before its product."""
    model = translators[0].model
    kernels = {tuple(weight.shape) for weight in model.weights if len(weight.shape) == 2}
    memory = model.encode(tf.ones((2, 3), tf.int32))
    cache = model.init_cache(memory, 8, 4)
    assert cache["fixed"]["layers"][0]["self"].key.dtype == tf.bfloat16
    step = tf.function(lambda ids, cache: model.decode_step(ids, 1, cache)[0], autograph=False)
    graph = step.get_concrete_function(tf.ones(8, tf.int32), cache).graph
    casts = [node.outputs[0].shape for node in graph.get_operations() if node.type == "Cast"]
    assert casts and not kernels & {tuple(shape) for shape in casts}
    products = [node for node in graph.get_operations() if "MatMul" in node.type]
    assert {node.outputs[0].dtype for node in products} == {tf.bfloat16}
    assert {node.outputs[0].dtype for node in graph.get_operations() if node.type == "Softmax"} == {tf.float32}


@pytest.mark.parametrize(
    "flags, onednn, words",
    [
        ("fpu avx512f avx512_bf16 sse", "1", ""),
        ("fpu amx_bf16", "1", ""),
        ("fpu avx512f avx512_vnni", "1", "no bfloat16 instructions"),
        ("fpu avx512_bf16", "0", "TF_ENABLE_ONEDNN_OPTS=0"),
        (None, "1", "no bfloat16 instructions"),
    ],
    ids=["avx512", "amx", "older", "onednn off", "not linux"],
)
@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="about CPUs")
def test_a_cpu_without_it_gets_float32_and_says_so(tmp_path, monkeypatch, caplog, flags, onednn, words):
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", onednn)
    cpuinfo = tmp_path / "cpuinfo"
    if flags:
        cpuinfo.write_text(f"processor : 0\nflags\t\t: {flags}\n")
    assert usable_dtype("bfloat16", cpuinfo=cpuinfo) == ("float32" if words else "bfloat16")
    assert words in caplog.text and len(caplog.records) == bool(words)
    assert usable_dtype(None, cpuinfo=cpuinfo) is None and usable_dtype("bfloat16", False, cpuinfo) == "bfloat16"


def test_another_dtype_is_refused(run_dir):
    with pytest.raises(UserError, match="compute_dtype=int8: expected one of float32, bfloat16"):
        Translator.load(str(run_dir), compute_dtype="int8")
