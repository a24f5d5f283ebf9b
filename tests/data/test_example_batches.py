"""Batches of a run by the options that it was given, and windows that slide over a text."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import sharding
from t2t_lite.data.example_batches import ExampleBatches, check_stride, sliding_batches
from t2t_lite.data.manifests import read_facts
from t2t_lite.data.problem import ChoppedTextProblem, Problem
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import TextEncoder
from tests.data import corpus


class Rows(ChoppedTextProblem):
    name = "rows"
    sequence_length = 7


@pytest.mark.parametrize(("count", "stride"), [(7, 3), (8, 7), (23, 1), (24, 3), (41, 5), (5, 2)])
def test_windows_score_each_id_once_with_enough_ids_before_it(tmp_path, count, stride):
    ids, path = list(range(3, 3 + count)), str(tmp_path / "rows")
    rows = [{"targets": ids[start : start + 7]} for start in range(0, count, 7)]
    sharding.write_shards(rows, [path], seed=0, features=("targets",), is_ordered=True)
    batches = list(sliding_batches(Rows(), HParams(batch_size=30), [path], None, stride))
    assert all(len(batch["targets"]) == 30 // 7 for batch in batches[:-1])
    targets, scored = (
        [row[row > 0].tolist() for batch in batches for row in batch[name].numpy()] for name in ("targets", "scored")
    )
    assert list(itertools.chain.from_iterable(scored)) == ids
    for number, (window, new) in enumerate(zip(targets, scored, strict=True)):
        assert window == ids[number * stride :][:7]
        assert window[len(window) - len(new) :] == new and (number == 0 or len(window) - len(new) == 7 - stride)


def test_windows_check_the_ids_against_the_vocabulary(tmp_path):
    path = str(tmp_path / "rows")
    sharding.write_shards([{"targets": [5, 9]}], [path], seed=0, features=("targets",))
    assert len(list(sliding_batches(Rows(), HParams(), [path], {"targets": TextEncoder(10)}, 3))) == 1
    with pytest.raises(UserError, match=r"vocabulary of 9 \(targets\)"):
        list(sliding_batches(Rows(), HParams(), [path], {"targets": TextEncoder(9)}, 3))


@pytest.mark.parametrize(
    ("name", "stride", "split", "options", "words"),
    [
        ("rows", 0, "train", {"has_state": True}, None),
        ("rows", 7, "eval", {}, None),
        ("rows", 1, "test", {}, None),
        ("rows", 5, "eval", {"has_state": True}, "carries a state"),
        ("rows", 5, "train", {}, "the train records of rows"),
        ("translate_own", 5, "eval", {}, "the dev records of translate_own"),
        ("masked_lm_own", 5, "test", {}, "the test records of masked_lm_own"),
        ("rows", 8, "eval", {}, ".* from 1 to 7"),
    ],
)
def test_the_stride_of_windows_is_one_that_scores_every_id(name, stride, split, options, words):
    problem = Rows() if name == "rows" else registry.problem(name)
    if words is None:
        check_stride(problem, stride, split, **options)
        return
    with pytest.raises(UserError, match=f"--eval_stride={stride}: .*{words}"):
        check_stride(problem, stride, split, **options)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return corpus.write_numbered(tmp_path_factory.mktemp("records"), 91, longest=23)


def test_each_way_to_read_hands_its_options_on(paths):
    """Limits, vocabularies and shapes; what a model draws is left out of `whole` alone."""

    class Drawing:
        features = {"inputs": 2, "targets": 2, "drawn": 2}  # noqa: RUF012

        @staticmethod
        def corrupt(batch, seeds, hparams):
            return {**batch, "inputs": batch["inputs"] * 2, "drawn": batch["inputs"]}

    hparams = HParams(batch_size=71, max_length=19, min_length=4)
    vars(hparams)["model_class"] = Drawing
    reading = ExampleBatches(Problem(), hparams, {"inputs": TextEncoder(150), "targets": TextEncoder(7)}, lanes=3)
    assert (reading.longest, reading.lanes, reading.rows_per_example) == (19, 3, 1) and "19" in reading.left_out
    assert list(reading.features) == ["inputs", "targets", "drawn"]
    drawn, whole = list(reading.evaluation(paths)), list(reading.whole(paths))
    assert sum(len(batch["inputs"]) for batch in whole) == 91 and list(whole[0]) == ["inputs", "targets"]
    for one, other in zip(drawn, whole, strict=True):
        np.testing.assert_array_equal(one["drawn"], other["inputs"])
        np.testing.assert_array_equal(one["inputs"], 2 * other["inputs"])
    batch = next(iter(reading.training(paths, read_facts(paths), most_shapes=3)))
    assert 1 < len(reading.ladder.shapes) <= 3 and max(reading.ladder.widest.values()) <= 19
    assert [len(batch["drawn"]), batch["drawn"].shape[1], batch["targets"].shape[1]] in reading.ladder.shapes.tolist()
    narrow, (rows, *widths) = reading.narrowest(), reading.ladder.shapes[0].tolist()
    assert [narrow["drawn"].shape, narrow["targets"].shape] == [(rows, widths[0]), (rows, widths[1])]
    small = ExampleBatches(Problem(), hparams, {"inputs": TextEncoder(90), "targets": TextEncoder(7)})
    for read in (small.evaluation, small.whole):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"vocabulary of 90 \(inputs\)"):
            list(read(paths))
