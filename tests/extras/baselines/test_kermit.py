"""KERMIT: its gradients and files, its expected loss by enumeration, and what is refused."""

import itertools
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.corruption import corrupted
from t2t_lite.data.problem import Problem
from t2t_lite.decoding.command.flag_checks import DecodeRequest, check
from t2t_lite.decoding.scoring import token_log_probs
from t2t_lite.decoding.search.adapters import Ensemble
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.export import formats
from t2t_lite.extras.baselines import kermit
from t2t_lite.extras.baselines.kermit import Kermit
from t2t_lite.models.arguments import model_hparams
from t2t_lite.settings.config import HParams
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.training import SmoothedCrossEntropy
from t2t_lite.training.evaluator import OutputScorer
from t2t_lite.training.objectives import objective_sums
from tests.data.canvases import canvases, slot_weights
from tests.extras.baselines.small_kermit import VOCAB, logits_of, make
from tests.layers.backend import check_gradients
from tests.layers.equations import array, softmax
from tests.training.steps import assert_same_gradients, row_gradients


@pytest.fixture(scope="module")
def model():
    return make()


def example():
    """Three texts of 7, 4 and 1 ids, and canvases of 5, 1 and 3."""
    draw = np.random.default_rng(1)
    inputs, canvas = draw.integers(3, VOCAB, (3, 7)), draw.integers(3, VOCAB, (3, 5))
    inputs[1, 4:], inputs[2, 1:], canvas[1, 1:], canvas[2, 3:] = 0, 0, 0, 0
    canvas[[0, 1, 2], [4, 0, 2]] = 1
    return inputs.astype("int32"), canvas.astype("int32")


RELATIVE = "pos=none,self_attention_type=dot_product_relative,max_relative_position=3"


@pytest.mark.slow
@pytest.mark.parametrize("hparams", ["", RELATIVE], ids=["absolute", "relative"])
def test_padding_of_any_width_and_neighbours_change_nothing(hparams):
    model, (inputs, canvas) = make(hparams=hparams), example()
    expected = logits_of(model, inputs, canvas)
    padded = logits_of(model, np.pad(inputs, ((0, 0), (0, 9))), np.pad(canvas, ((0, 0), (0, 4))))
    for row, (width, length) in enumerate(zip((7, 4, 1), (5, 1, 3), strict=True)):
        at = slice(row, row + 1)
        alone = logits_of(model, inputs[at, :width], canvas[at, :length])[0]
        for found in (expected[row, :length], padded[row, :length]):
            np.testing.assert_allclose(found, alone, atol=2e-5)


def test_every_id_of_both_sides_is_seen_by_every_slot_and_the_sides_differ(model):
    inputs, canvas = example()
    before = logits_of(model, inputs, canvas)
    for feature in (inputs, canvas):
        changed = feature.copy()
        changed[0, 2] = 3 if feature[0, 2] != 3 else 4
        after = logits_of(model, *((changed, canvas) if feature is inputs else (inputs, changed)))
        assert (np.abs(after - before)[0].max(axis=1) > 1e-4).all()
        np.testing.assert_array_equal(after[1:], before[1:])
    swapped = logits_of(model, canvas[:1], inputs[:1])
    assert np.abs(swapped[0, :5] - before[0]).max() > 1e-2


def test_gradient_reaches_every_weight(model):
    inputs, canvas = example()
    check_gradients(lambda: model({"inputs": inputs, "canvas": canvas}, training=True), model.trainable_weights)


@pytest.mark.slow
def test_files_hyperparameters_and_two_vocabularies(tmp_path):
    model = make(target_vocab_size=VOCAB + 9)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    found, expected = (logits_of(each, *example()) for each in (loaded, model))
    np.testing.assert_array_equal(found, expected)
    assert expected.shape == (3, 5, VOCAB + 9)
    again = Kermit.from_hparams(model_hparams(model, HParams()), VOCAB, VOCAB + 9)
    assert again.config == model.config == loaded.config
    spec = {name: keras.Input((None,), dtype="int32") for name in model.features}
    assert model.compute_output_spec(spec).shape == (None, None, VOCAB + 9)


@pytest.mark.slow
def test_costs_of_experts_are_those_of_both_sides_positions():
    model, (inputs, canvas) = make(hparams="ffn_layer=local_moe,moe_num_experts=2"), example()
    outputs = model({"inputs": inputs, "canvas": canvas, "targets": canvas}, training=True)
    for feature, ids in (("inputs", inputs), ("targets", canvas)):
        cost = array(outputs["costs"][feature])
        assert cost.shape == ids.shape and (cost[ids != 0] > 0).all()
    assert array(model.search(inputs, np.array([3, 3, 3]))[0]).shape == (3, 1, 3)  # it reads logits alone


@pytest.mark.long
@pytest.mark.parametrize("kind", ["recomputed", "in XLA"])
def test_a_step_has_the_same_gradient(kind):
    """With dropout, of activations that are computed again, and compiled."""
    inputs, canvas = example()
    batch = {"inputs": inputs, "canvas": canvas, "targets": np.where(canvas != 0, 4 + canvas % 5, 0)}
    row = types.SimpleNamespace(smoothing=0.1)
    model, again = (make(dropout=0.3, recompute_grad=recompute) for recompute in (False, kind == "recomputed"))
    found = row_gradients(row, again, batch, in_xla=kind == "in XLA")
    assert_same_gradients(found, row_gradients(row, model, batch), model, 1e-5)


@pytest.mark.long
def test_trains_through_compile_and_fit():
    model, (inputs, canvas) = make(scale=0.0, dropout=0.0), example()
    targets = np.where(canvas != 0, 4 + canvas % 5, 0)
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss=SmoothedCrossEntropy(0.0), run_eagerly=True)
    history = model.fit({"inputs": inputs, "canvas": canvas}, targets, epochs=6, batch_size=3, verbose=0)
    assert history.history["loss"][-1] < 0.8 * history.history["loss"][0]


# The objective.

ROW = (5, 6, 7, 8)


class Drawn:
    """Stands in for random numbers: of four ids each size, order of ranks and order of choices once."""

    def __init__(self):
        orders = [*itertools.permutations(range(4))]
        cases = [*itertools.product(range(5), orders, orders)]
        self.numbers = np.zeros((len(cases), 2, 5, 2), "float32")
        for case, (size, rank, choice) in zip(self.numbers, cases, strict=True):
            case[0, :4, 0], case[0, :4, 1] = np.array(rank) / 5, np.array([0.1, 0.4, 0.6, 0.9])[list(choice)]
            case[0, 4] = 0.5  # of the end, which is not drawn
            case[1, 0, 0] = (size + 0.5) / 5

    def __call__(self, seeds, num_samples, length):
        return tf.constant(self.numbers)


@pytest.mark.slow
def test_the_expected_loss_is_that_of_the_papers_by_enumeration(model, monkeypatch):
    """All canvases of four ids, each slot and each missing id with its weight: all draws have the same mean."""
    source, drawn = [4, 9, 1], Drawn()
    monkeypatch.setattr(kermit, "uniform_numbers", drawn)
    rows = len(drawn.numbers)
    batch = {"inputs": tf.constant([source] * rows), "targets": tf.constant([[*ROW, 1]] * rows)}
    hparams = registry.hparams("kermit_tiny").of_model(Kermit).parse("slot_order=uniform")
    batch = Kermit.corrupt(batch, tf.zeros([rows, 2], tf.int32), hparams)
    sums = objective_sums(model(batch, training=False), batch)
    expected, slots = 0.0, 0.0
    for canvas, share in canvases(ROW).items():
        log_probs = np.log(softmax(logits_of(model, np.array([source]), np.array([[*canvas, 1]]))[0]))
        places = [-1, *(ROW.index(i) for i in canvas), 4]
        for slot, (before, after) in enumerate(itertools.pairwise(places)):
            absent = ROW[before + 1 : after] or [1]
            expected -= share * np.dot(slot_weights(len(absent), "uniform"), log_probs[slot, list(absent)])
        slots += share * (len(canvas) + 1)
    assert float(sums.nats["targets"]) / rows == pytest.approx(expected, rel=1e-5)
    assert np.count_nonzero(batch["targets"]) / rows == pytest.approx(slots)


def test_the_order_of_insertions_is_the_set_s(monkeypatch):
    settings = []
    monkeypatch.setattr(kermit, "Insertion", lambda *values: settings.append(values) or (lambda ids, seeds: (ids, ids)))
    hparams = registry.hparams("kermit_tiny").of_model(Kermit)
    Kermit.corrupt({"targets": []}, [], hparams.parse("slot_order=uniform,slot_temperature=0.3"))
    assert settings == [("uniform", 0.3)]


@pytest.mark.slow
def test_batches_are_drawn_by_the_model_and_references_stay_whole():
    hparams = registry.hparams("kermit_tiny").of_model(Kermit)
    inputs, targets = np.array([[4, 9, 1]] * 6, "int32"), np.array([[*ROW, 1]] * 6, "int32")
    targets[:, 0] = range(10, 16)  # another seed for each
    batches = tf.data.Dataset.from_tensors({"inputs": inputs, "targets": targets}).repeat(4)
    of_stream = [*corrupted(Problem(), batches, hparams, is_stream=True).as_numpy_iterator()]
    assert {tuple(batch) for batch in of_stream} == {("inputs", "targets", "canvas")}
    assert len({batch["canvas"].tobytes() for batch in of_stream}) == 4
    first, second, *_ = corrupted(Problem(), batches, hparams).as_numpy_iterator()
    np.testing.assert_array_equal(first["canvas"], second["canvas"])
    np.testing.assert_array_equal((first["canvas"] != 0), (first["targets"] != 0))
    whole = next(corrupted(Problem(), batches, hparams, whole=True).as_numpy_iterator())
    assert whole.keys() == {"inputs", "targets"} and (whole["targets"] == targets).all()


# What is refused.


@pytest.mark.parametrize(
    ("name", "value"),
    {
        "beam_size": 8, "n_best": 2, "sampling": True, "no_repeat_ngram_size": 2, "repetition_penalty": 1.2,
        "stop": ["."],
    }.items(),
)  # fmt: skip
def test_what_the_search_cannot_do_is_refused_in_one_line(model, name, value):
    message = f"^Kermit: {name} needs a model that predicts one id after the other"
    with pytest.raises(UserError, match=message) as refused:
        Searcher(model).search([[5, 1]], SearchOptions(**{name: value}))
    assert "\n" not in str(refused.value)


def test_prefixes_streams_ensembles_and_scores_are_refused(model):
    searcher, options = Searcher(model), SearchOptions()
    for what, call in {
        "prefixes": lambda: searcher.search([[5, 1]], options, prefixes=[[4]]),
        "streaming an output": lambda: next(searcher.stream([5, 1], options)),
        "an ensemble": lambda: Ensemble([model, model]),
        "scoring targets": lambda: token_log_probs(model),
    }.items():
        with pytest.raises(UserError, match=f"^Kermit: {what}"):
            call()


def test_a_search_tree_is_refused(model):
    insights = pytest.importorskip("t2t_lite.extras.insights.search_tree")
    with pytest.raises(UserError, match=r"^Kermit: a search tree"):
        insights.trace(Searcher(model), [5, 1], SearchOptions())


@pytest.mark.parametrize(
    "flag, name",
    [({"mbr": "chrf"}, "mbr"), ({"tune": "grid"}, "tune"), ({"n_best_format": "json"}, "n_best_format=json")],
)
def test_flags_about_beams_are_refused_by_their_names(flag, name):
    problem = registry.problem("translate_ende_wmt32k")
    run = types.SimpleNamespace(checkpoint="run/model.ckpt-1", config={"model": "kermit"}, problem=problem)
    flags = {"decode_from_file": "in", "decode_reference": "ref"}
    check(DecodeRequest(flags, [run]))
    with pytest.raises(UserError, match=f"^--{name}: .* run/model.ckpt-1 is a kermit"):
        check(DecodeRequest(flags | flag, [run]))
    with pytest.raises(UserError, match=r"^--alignments_file: .* is a kermit, which does not expose its attention"):
        check(DecodeRequest(flags | {"alignments_file": "links"}, [run]))


def test_a_beam_of_evaluations_is_refused_before_the_training(model):
    problem, encoders = registry.problem("translate_ende_wmt32k"), dict.fromkeys(("inputs", "targets"), None)
    translator = Translator(model, encoders, HParams(eval_beam_size=8), problem)
    with pytest.raises(UserError, match=r"^eval_beam_size: Kermit: beam_size\b"):
        OutputScorer(translator, [], None, [])


@pytest.mark.parametrize("name", formats.names())
def test_no_format_of_exports_holds_it(model, name):
    with pytest.raises(UserError, match="cannot hold this model: it ") as refused:
        formats.check_model(name, model)
    assert "SavedModel (--format" not in str(refused.value)


def test_a_problem_without_texts_of_texts_is_refused():
    class Classes(Problem):
        features = {"inputs": 2, "targets": 1}  # noqa: RUF012

    batches = tf.data.Dataset.from_tensors({"inputs": [[4, 1]], "targets": [3]})
    with pytest.raises(UserError, match=rf"^Kermit\b.*\btargets of {Classes().full_name}\b.*\btranslate_own\b"):
        corrupted(Classes(), batches, HParams().of_model(Kermit))
