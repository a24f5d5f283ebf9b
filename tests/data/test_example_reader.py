"""A ported `preprocess_example` is applied wherever examples are read, and nothing changes where there is none."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data import batching, manifests, sharding
from t2t_lite.data.example_reader import ExampleReader
from t2t_lite.data.problem import DatasetSplit, Problem
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import TextEncoder
from tests.data import corpus

HPARAMS = HParams(batch_size=64, max_length=8)
MARKS = {"train": 20, "eval": 21, "infer": 22}


class Plain(Problem):
    """Examples of inputs [10 + n, 1] and of targets [30, …, 1], 2 to 7 ids."""

    name = "reader"
    dataset_splits = [{"split": s, "shards": 2} for s in (DatasetSplit.TRAIN, DatasetSplit.EVAL)]  # noqa: RUF012

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        for n in range(60):
            yield {"inputs": [10 + n % 6, 1], "targets": [*[30] * (n % 6 + 1), 1]}

    def feature_encoders(self, data_dir):
        return {"inputs": TextEncoder(60), "targets": TextEncoder(50)}


class Ported(Plain):
    """Puts a mark of the mode before the inputs, and leaves out the last ids of the targets."""

    def preprocess_example(self, example, mode, hparams):
        mark = tf.constant([MARKS[mode]], tf.int64)
        example["inputs"] = tf.concat([mark, example["inputs"]], 0)
        example["targets"] = example["targets"][: hparams.max_length - 4]
        return example


class Twice(Plain):
    """Makes two examples of one with an odd number, and none of the others; the copy is two ids longer."""

    def preprocess_example(self, example, mode, hparams):
        longer = {**example, "inputs": tf.concat([example["inputs"], example["inputs"]], 0)}
        both = {name: tf.ragged.stack([example[name], longer[name]]) for name in example}
        both = tf.data.Dataset.from_tensor_slices(both)
        return both.take(2 * (example["inputs"][0] % 2))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("reader"))
    Plain().generate_data(folder, folder)
    return folder


@pytest.fixture(scope="module")
def twice(data_dir):
    """`Twice` for training; each iterator begins anew."""
    return training(Twice(), data_dir)


def rows(batches, count=40):
    """All examples of the first batches, without padding, as {(inputs, targets)}."""
    return {
        tuple(tuple(row[row != 0].tolist()) for row in both)
        for batch in itertools.islice(iter(batches), count)
        for both in zip(batch["inputs"].numpy(), batch["targets"].numpy(), strict=True)
    }


def training(problem, data_dir):
    return batching.training_batches(problem, HPARAMS, Records(problem, data_dir, "train").paths)


def evaluation(problem, data_dir):
    return batching.evaluation_batches(problem, HPARAMS, Records(problem, data_dir, "eval").paths)


def fit(split):
    return lambda problem, data_dir: problem.dataset(data_dir, split, HPARAMS).map(lambda batch, _: batch)


def decoding(problem, data_dir):
    reader = ExampleReader(problem, HPARAMS, "infer", Records(problem, data_dir, "eval").paths)
    return ({name: tf.constant([ids]) for name, ids in example.items()} for example in reader.examples())


@pytest.mark.few("training-rev", "fit-copy", "evaluation-copy", "fit on the dev set-plain", "decoding-rev")
@pytest.mark.slow
@pytest.mark.parametrize("flags", [{}, {"was_reversed": True}, {"was_copy": True}], ids=["plain", "rev", "copy"])
@pytest.mark.parametrize(
    ("read", "mode"),
    [(training, "train"), (fit("train"), "train"), (evaluation, "eval"), (fit("dev"), "eval"), (decoding, "infer")],
    ids=["training", "fit", "evaluation", "fit on the dev set", "decoding"],
)
def test_every_reader_applies_a_ported_override_before_it_swaps(data_dir, read, mode, flags):
    problem = Ported(**flags)
    examples = ({"inputs": (MARKS[mode], 10 + n, 1), "targets": (*[30] * (n + 1), 1)[:4]} for n in range(6))
    expected = {tuple(problem.maybe_reverse_and_copy(example).values()) for example in examples}
    assert rows(read(problem, data_dir), 60) == expected


SHORT = {((10 + n, 1), (*[30] * (n + 1), 1)) for n in (1, 3, 5)}
LONG = {((10 + n, 1, 10 + n, 1), (*[30] * (n + 1), 1)) for n in (1, 3, 5)}


@pytest.mark.slow
def test_an_example_may_become_several_or_none(data_dir, twice):
    for batches in (twice, evaluation(Twice(), data_dir)):
        assert rows(batches) == SHORT | LONG


@pytest.mark.slow
def test_the_limits_count_after_it(data_dir):
    hparams = HPARAMS.override_from_dict({"max_length": 3})
    records = Records(Twice(), data_dir, "train")
    split, paths = records.check_training(hparams), records.paths
    assert (split.examples, split.dropped) == (10, 50)  # of 30 short and 30 longer ones: inputs and targets of 2 and 3
    assert rows(batching.training_batches(Twice(), hparams, paths)) == {((11, 1), (30, 30, 1))}
    ladder = batching.problem_ladder(Twice(), HPARAMS, paths, {}, split.facts)
    assert ladder.widest == {"inputs": 4, "targets": 7}


@pytest.mark.long
def test_the_widths_of_a_ladder_count_after_it(data_dir):
    records = Records(Twice(), data_dir, "train")
    facts, paths = records.check_training(HPARAMS).facts, records.paths
    ladder = batching.problem_ladder(Twice(), HPARAMS, paths, {}, facts)
    stream = batching.training_batches(Twice(), HPARAMS, paths, ladder=ladder)
    assert rows(stream) == SHORT | LONG


@pytest.mark.slow
def test_a_restored_iterator_goes_on_identically(twice, tmp_path):
    corpus.assert_goes_on_identically(lambda: iter(twice), tmp_path, read=7, more=20)


@pytest.mark.parametrize("kind", ["missing", "negative", "empty", "beyond the vocabulary"])
def test_what_an_override_may_not_return(data_dir, kind):
    class Wrong(Plain):
        def preprocess_example(self, example, mode, hparams):
            ids = {"negative": [-1], "beyond the vocabulary": [70]}.get(kind, [])
            return {"inputs": tf.constant(ids, tf.int64), "targets": example["targets"]} if kind != "missing" else {
                "inputs": example["inputs"]
            }  # fmt: skip

    words = {"missing": "reader: .* lack targets", "beyond the vocabulary": r"vocabulary of 60 \(inputs\)"}.get(
        kind, "preprocess_example returned a feature without ids, or an id below 0"
    )
    paths = Records(Wrong(), data_dir, "eval").paths
    with pytest.raises((UserError, tf.errors.InvalidArgumentError), match=words):
        next(iter(batching.evaluation_batches(Wrong(), HPARAMS, paths, Wrong().feature_encoders(data_dir))))


@pytest.mark.slow
def test_fit_checks_the_ids_of_the_dev_set_too(data_dir):
    class Wrong(Plain):
        def preprocess_example(self, example, mode, hparams):
            return {**example, "inputs": tf.constant([70], tf.int64)}

    words = r"an id is outside the vocabulary of 60 \(inputs\)"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        next(iter(fit("dev")(Wrong(), data_dir)))


STATEFUL = {
    "RandomUniform": lambda ids: tf.where(tf.random.uniform([1]) < 0.5, ids, 3),
    "RngReadAndSkip": lambda ids: ids + tf.random.get_global_generator().uniform([], 0, 2, tf.int64),
    "RandomShuffle": tf.random.shuffle,
    "PyFunc": lambda ids: tf.ensure_shape(tf.numpy_function(lambda ids: ids, [ids], ids.dtype), ids.shape),
}


class Drawing(Plain):
    def __init__(self, operation):
        super().__init__()
        self.operation = operation

    def preprocess_example(self, example, mode, hparams):
        return {**example, "inputs": STATEFUL[self.operation](example["inputs"])}


class DrawingOfSeveral(Drawing):
    def preprocess_example(self, example, mode, hparams):
        one = super().preprocess_example
        return tf.data.Dataset.from_tensors(example).map(lambda example: one(example, mode, hparams))


class DrawingInBatches(Plain):
    def corrupt(self, batch, seeds):
        return {**batch, "inputs": tf.where(tf.random.uniform([]) < 0.5, batch["inputs"], 3)}


@pytest.mark.few(
    "RandomUniform-Drawing", "RngReadAndSkip-DrawingOfSeveral", "RandomShuffle-Drawing", "PyFunc-DrawingOfSeveral"
)
@pytest.mark.parametrize("problem_class", [Drawing, DrawingOfSeveral])
@pytest.mark.parametrize("operation", STATEFUL)
def test_what_could_not_be_resumed_is_refused_before_records_are_read(problem_class, operation):
    name = rf"{problem_class.__name__}\.preprocess_example"
    words = rf"{name}: uses {operation}\w*, whose state .*random\.stateless_uniform\.$"
    for read in (batching.training_batches, batching.evaluation_batches):
        with pytest.raises(UserError, match=words):
            read(problem_class(operation), HPARAMS, ["/nowhere/a"])


@pytest.mark.slow
def test_random_numbers_with_a_state_in_batches_are_refused_too(data_dir):
    with pytest.raises(UserError, match=r"DrawingInBatches\.corrupt: uses RandomUniform,"):
        training(DrawingInBatches(), data_dir)


class Several(Problem):
    """One text, a segment for each of its ids, and a label."""

    features = {"targets": 2, "segments": 2, "label": 1}  # noqa: RUF012


@pytest.mark.slow
@pytest.mark.parametrize("with_ladder", [False, True], ids=["any widths", "ladder"])
def test_any_number_of_features(tmp_path, with_ladder):
    examples = [{"targets": [*[n + 5] * (n % 8), 1], "segments": [1, 2][: n % 2 + 1], "label": [n % 3]}
                for n in range(90)]  # fmt: skip
    path, names = str(tmp_path / "several"), Several().record_features
    facts = sharding.write_shards(examples, [path], seed=0, features=names)[0]
    read = manifests.read_facts([path], names)
    assert read == {name: facts[name] for name in read}
    assert read["largest_id"] == {"targets": 94, "segments": 2, "label": 2}
    ladder = batching.problem_ladder(Several(), HPARAMS, [path], {}, read) if with_ladder else None
    found = []
    for batch in batching.training_batches(Several(), HPARAMS, [path], ladder=ladder).take(60).as_numpy_iterator():
        count = len(batch["label"])
        assert batch["label"].shape == (count,) and count * batch["targets"].shape[1] <= 64
        if ladder:
            shape = [count, batch["targets"].shape[1], batch["segments"].shape[1], 1]
            assert shape in ladder.shapes.tolist()
        for row in range(count):
            ids = {name: [i for i in np.atleast_1d(batch[name][row]).tolist() if i] for name in ("targets", "segments")}
            found.append({**ids, "label": [int(batch["label"][row])]})
    assert all(example in examples for example in found)
    assert {example["targets"][0] for example in found} == {example["targets"][0] for example in examples}


def test_a_label_is_a_single_id(tmp_path):
    path = str(tmp_path / "two")
    example = {"targets": [5, 1], "segments": [1], "label": [1, 2]}
    sharding.write_shards([example], [path], seed=0, features=Several().record_features)
    with pytest.raises(tf.errors.InvalidArgumentError, match="queeze"):
        next(iter(batching.evaluation_batches(Several(), HPARAMS, [path])))
