"""What `corrupt` draws for a row follows from the stream alone."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data import batching
from t2t_lite.data.corruption import corrupted, row_seeds
from t2t_lite.data.problem import Problem
from t2t_lite.data.random_numbers import uniform_numbers
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from tests.data import corpus

HPARAMS = HParams(batch_size=256, max_length=30, random_seed=7)


class Masked(Problem):
    """Replaces a third of the inputs by 3; `sentence` are the ids that were there."""

    features = {"inputs": 2, "targets": 2, "sentence": 2}  # noqa: RUF012
    record_features = "inputs", "targets"

    def corrupt(self, batch, seeds):
        ids = batch["inputs"]
        is_masked = (uniform_numbers(seeds, 1, tf.shape(ids)[1])[:, 0, :, 0] < 1 / 3) & (ids != 0)
        return {**batch, "inputs": tf.where(is_masked, 3, ids), "sentence": tf.where(is_masked, ids, 0)}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return corpus.write_numbered(tmp_path_factory.mktemp("records"), 400)


@pytest.fixture(scope="module")
def dataset(paths):
    """Masked batches for training; each iterator begins anew."""
    return batching.training_batches(Masked(), HPARAMS, paths)


@pytest.fixture(scope="module")
def clean(paths):
    """The same without masks."""
    return batching.training_batches(Problem(), HPARAMS, paths)


def assert_same(first, second):
    for expected, found in zip(first, second, strict=True):
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.slow
def test_a_third_is_masked_and_nothing_is_lost(dataset, clean):
    masked, ids = 0, 0
    for batch, expected in zip(dataset.take(30), clean.take(30), strict=True):
        assert list(batch) == ["inputs", "targets", "sentence"]
        whole = tf.where(batch["sentence"] != 0, batch["sentence"], batch["inputs"])
        assert_same([expected], [{"inputs": whole, "targets": batch["targets"]}])
        masked, ids = masked + np.count_nonzero(batch["sentence"]), ids + np.count_nonzero(whole)
    assert 0.3 < masked / ids < 0.37


@pytest.mark.slow
def test_a_row_is_masked_anew_each_time_it_comes(dataset):
    masks = collections.defaultdict(list)
    for batch in dataset.take(70):
        whole = np.where(batch["sentence"] != 0, batch["sentence"], batch["inputs"])
        for row, mask in zip(whole, batch["sentence"].numpy() != 0, strict=True):
            masks[row[0]].append(tuple(mask[row != 0]))
    several = [found for found in masks.values() if len(found) > 1 and len(found[0]) > 8]
    assert len(several) > 50
    assert np.mean([len(set(found)) > 1 for found in several]) > 0.9


@pytest.mark.slow
def test_a_resumed_run_masks_alike(paths, dataset, tmp_path):
    """It makes the data set anew."""
    made = iter([dataset, batching.training_batches(Masked(), HPARAMS, paths)])
    corpus.assert_goes_on_identically(lambda: iter(next(made)), tmp_path)


@pytest.mark.slow
def test_evaluation_masks_alike_each_time(paths):
    first, other = (
        batching.evaluation_batches(Masked(), HPARAMS.override_from_dict({"random_seed": seed}), paths)
        for seed in (7, 8)
    )
    assert_same(first, first)
    assert any((a["inputs"].numpy() != b["inputs"].numpy()).any() for a, b in zip(first, other, strict=True))


def test_seeds_depend_on_the_row_the_batch_and_the_run_alone():
    ids = np.array([[5, 6, 7, 1], [6, 5, 1, 0], [5, 1, 0, 0], [5, 1, 0, 0]], np.int32)
    batch = {"inputs": ids, "label": np.array([1, 2, 3, 4], np.int32)}

    def seeds(batch, seed=7, index=9):
        return row_seeds({name: tf.constant(ids) for name, ids in batch.items()}, seed, tf.constant(index, tf.int64))

    all_rows = seeds(batch).numpy()
    assert all_rows.dtype == np.int32 and len(set(map(tuple, all_rows))) == 4
    turned = {"inputs": np.pad(ids[::-1], [(0, 0), (0, 5)]), "label": batch["label"][::-1]}  # other neighbors and width
    np.testing.assert_array_equal(seeds(turned)[::-1], all_rows)
    np.testing.assert_array_equal(seeds({"inputs": ids[1:2, :3], "label": batch["label"][1:2]})[0], all_rows[1])
    for other in (seeds(batch, seed=8), seeds(batch, index=8), seeds({**batch, "inputs": ids + (ids > 1)})):
        assert not (other.numpy() == all_rows).any(1).any()


@pytest.mark.slow
def test_a_feature_that_nothing_adds_is_named(paths):
    class Forgotten(Masked):
        def corrupt(self, batch, seeds):
            return {"inputs": batch["inputs"]}

    with pytest.raises(UserError, match=r"problem: .* lack sentence and targets"):
        batching.training_batches(Forgotten(), HPARAMS, paths)


class Drawing:
    """A model that draws: `drawn` are the numbers."""

    features = {"drawn": 2}  # noqa: RUF012

    @staticmethod
    def corrupt(batch, seeds, hparams):
        return {**batch, "drawn": seeds}


def test_a_model_draws_other_numbers_than_the_problem_and_for_texts_alone():
    class Seeds(Problem):
        def corrupt(self, batch, seeds):
            return {**batch, "inputs": seeds}

    class Alone(Problem):
        features = {"targets": 2}  # noqa: RUF012

    hparams = HParams(random_seed=7)
    vars(hparams)["model_class"] = Drawing
    batch = tf.data.Dataset.from_tensors({name: tf.constant([[5, 1], [6, 1]]) for name in ("inputs", "targets")})
    for is_stream in (False, True):
        (drawn,) = corrupted(Problem(), batch, hparams, is_stream)
        assert list(drawn) == ["inputs", "targets", "drawn"]
        (of_problem,) = corrupted(Seeds(), batch, HParams(random_seed=7), is_stream)
        assert (drawn["drawn"].numpy() != of_problem["inputs"].numpy()).all()
    assert list(next(iter(corrupted(Problem(), batch, hparams, whole=True)))) == ["inputs", "targets"]
    with pytest.raises(UserError, match=r"Drawing .* the inputs of problem"):
        corrupted(Alone(), batch, hparams)


class Augmented(Masked):
    """Adds 1000 to the targets before inputs are masked, which their sum with `sentence` tells."""

    def augment(self, batch, seeds):
        return {**batch, "targets": tf.where(batch["targets"] > 1, batch["targets"] + 1000, batch["targets"])}


@pytest.mark.slow
def test_training_alone_is_augmented_and_then_corrupted(paths, clean):
    augmented = batching.training_batches(Augmented(), HPARAMS, paths)
    for batch, plain in zip(augmented.take(3), clean, strict=False):
        np.testing.assert_array_equal(batch["targets"] % 1000, plain["targets"] % 1000)
        assert (batch["targets"].numpy().max(1) >= 1000).all() and (batch["sentence"] != 0).numpy().any()
    assert_same(*(batching.evaluation_batches(problem, HPARAMS, paths) for problem in (Augmented(), Masked())))
