"""Batches of the budget's size, in which each pass over the data has each example once, across checkpoints, too."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data import batching, manifests, sharding
from t2t_lite.data.problem import Problem
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text import subwords, vocabulary
from t2t_lite.text.vocabulary import TextEncoder
from tests.data import corpus
from tests.data.stored import read_examples

pytestmark = pytest.mark.slow  # many streams, each of them built anew

EXAMPLES, BATCH_SIZE = 1000, 256
MOST_ROWS = BATCH_SIZE // 3  # of a batch: the shortest example has 3 ids


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return corpus.write_numbered(tmp_path_factory.mktemp("records"), EXAMPLES)


@pytest.fixture(scope="module")
def originals(paths):
    return {example["inputs"][0] - 10: example for example in read_examples(paths)}


def numbers(batch):
    return (batch["inputs"][:, 0].numpy() - 10).tolist()


def test_a_batch_is_padded_int32_and_fills_the_budget(paths, originals):
    """Also where pools are small: what does not fill a pool's last batch is carried on."""
    real = cells = 0
    widths = []
    for batch in itertools.islice(corpus.training_batches(paths, batch_size=256, pool_size=500), 150):
        for side, ids in batch.items():
            longest = max(len(originals[n][side]) for n in numbers(batch))
            assert ids.dtype == tf.int32 and ids.shape == (len(numbers(batch)), longest)
            for n, row in zip(numbers(batch), ids.numpy(), strict=True):
                assert row.tolist() == originals[n][side] + [0] * (longest - len(originals[n][side]))
            real, cells = real + np.count_nonzero(ids), cells + ids.shape.num_elements()
        widths.append(max(batch["inputs"].shape[1], batch["targets"].shape[1]))
        assert 256 - 2 * 30 < len(numbers(batch)) * widths[-1] <= 256
    assert real / cells >= 0.90
    assert widths not in (sorted(widths), sorted(widths, reverse=True))


def test_rows_that_fill_the_budget_exactly_are_one_batch(tmp_path):
    path = str(tmp_path / "even-train-00000-of-00001")
    sharding.write_shards(({"inputs": [9, 9, 9, 1], "targets": [9, 1]} for _ in range(12)), [path], seed=0)
    batches = batching.evaluation_batches(Problem(), HParams(batch_size=16), [path])
    assert [batch["inputs"].shape for batch in batches] == [(4, 4)] * 3


def test_the_saved_state_is_small(paths, tmp_path):
    iterator = iter(corpus.training_batches(paths, batch_size=4096))
    next(iterator)
    tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 50e6


def test_what_cannot_fit_into_a_batch_is_dropped_in_training_and_kept_in_evaluation(paths, originals):
    longest = max(max(map(len, example.values())) for example in originals.values())
    batches = itertools.islice(corpus.training_batches(paths, batch_size=longest - 1, max_length=0), 50)
    assert max(batch[side].shape[1] for batch in batches for side in batch) <= longest - 1
    first, again = (list(corpus.evaluation_batches(paths, batch_size=longest - 1)) for _ in range(2))
    assert sorted(n for batch in first for n in numbers(batch)) == list(range(EXAMPLES))
    for one, other in zip(first, again, strict=True):
        assert all(np.array_equal(one[side], other[side]) for side in one) and one["targets"].dtype == tf.int32


def test_a_corpus_smaller_than_a_batch_still_gives_batches(tmp_path):
    (path,) = corpus.write_numbered(tmp_path, 3, shards=1)
    batches = list(itertools.islice(corpus.training_batches([path], batch_size=200), 20))
    assert set(numbers(batches[0])) == {0, 1, 2} and all(len(numbers(batch)) > 3 for batch in batches)


def test_no_example_within_the_limits(paths):
    with pytest.raises(UserError, match="no example has between 0 and 1 ids"):
        corpus.training_batches(paths, batch_size=100, max_length=1)


def test_ids_outside_the_vocabulary_of_a_side_are_an_error(paths):
    for sizes, side in (((EXAMPLES + 10, 6), "targets"), ((100, 7), "inputs")):
        encoders = dict(zip(("inputs", "targets"), map(TextEncoder, sizes), strict=True))
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"outside the vocabulary of \d+ \({side}\)"):
            list(corpus.evaluation_batches(paths, batch_size=100, encoders=encoders))


# Passes over the data.


def steps(iterator, replicas):
    """The steps of a trainer on so many replicas: lists of batches."""
    while True:
        yield [next(iterator) for _ in range(replicas)]


def check_counts(counts, total):
    """Checks the promise after `total` examples: whole passes, but for what is carried over and the pass under way."""
    passes, seen = divmod(total, EXAMPLES)
    assert set(counts) <= set(range(EXAMPLES))
    every = [counts[n] for n in range(EXAMPLES)]
    assert max(every) - min(every) <= 2
    assert max(every) <= (total + MOST_ROWS) // EXAMPLES + 1
    # Of the pass before, at most one batch is still to come.
    assert sum(max(0, passes - count) for count in every) <= MOST_ROWS + seen


@pytest.mark.few("8-None")
@pytest.mark.parametrize(("replicas", "pool_size"), [(1, 300), (2, 300), (8, 300), (8, None)])
def test_each_example_comes_once_in_a_pass(paths, replicas, pool_size):
    stream = corpus.training_batches(paths, batch_size=BATCH_SIZE, seed=5, pool_size=pool_size)
    counts, total = collections.Counter(), 0
    for step in itertools.islice(steps(iter(stream), replicas), 240 // replicas):
        for batch in step:
            counts.update(numbers(batch))
            total += len(numbers(batch))
            check_counts(counts, total)
    assert total > 3 * EXAMPLES


def test_a_pool_holds_examples_of_one_pass(paths):
    """Pools of 300: the pass's last one has 100 and not 200 of the next pass beside them."""
    stream = iter(corpus.training_batches(paths, batch_size=BATCH_SIZE, seed=5, pool_size=300))
    counts, total, late = collections.Counter(), 0, 0
    for batch in itertools.islice(stream, 240):
        repeated = [n for n in numbers(batch) if counts[n] > total // EXAMPLES]
        late += len(repeated)
        counts.update(numbers(batch))
        total += len(numbers(batch))
    # Only while what was carried over is still to come can an example of the next pass come early.
    assert late <= MOST_ROWS * (total // EXAMPLES)


@pytest.mark.few("1-8-13")
@pytest.mark.parametrize(("before", "after", "position"), [(1, 8, 13), (8, 1, 23), (8, 2, 3)])
def test_nothing_is_lost_or_repeated_when_a_run_goes_on_with_other_replicas(paths, tmp_path, before, after, position):
    """Stopped in mid-pass, and near the end of one; the batches are those of a run that was never stopped."""
    arguments = {"batch_size": BATCH_SIZE, "seed": 3, "pool_size": 400}
    stopped_after = position * 8 // before
    iterator = iter(corpus.training_batches(paths, **arguments))
    first = list(itertools.islice(steps(iterator, before), stopped_after))
    saved = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "it"))
    restored = iter(corpus.training_batches(paths, **arguments))
    tf.train.Checkpoint(iterator=restored).restore(saved).assert_consumed()
    second = list(itertools.islice(steps(restored, after), 80 // after))
    groups = [numbers(batch) for step in first + second for batch in step]
    unstopped = iter(corpus.training_batches(paths, **arguments))
    assert groups == [numbers(next(unstopped)) for _ in groups]
    counts, total = collections.Counter(), 0
    for group in groups:
        counts.update(group)
        total += len(group)
        check_counts(counts, total)


def test_two_passes_have_different_orders_and_both_follow_from_the_seed(paths):
    def orders(seed):
        groups = [numbers(batch) for batch in itertools.islice(steps_of(seed), 150)]
        flat = [n for group in groups for n in group]
        return flat[:700], flat[EXAMPLES : EXAMPLES + 700], {frozenset(group) for group in groups}

    def steps_of(seed):
        return iter(corpus.training_batches(paths, batch_size=BATCH_SIZE, seed=seed, pool_size=400))

    first, second, groups = orders(7)
    assert first != second
    assert len(groups) > 145  # and other neighbours
    tf.random.set_seed(123)  # TensorFlow's own seed changes nothing
    assert orders(7) == (first, second, groups)
    assert orders(0)[0] != first != orders(-8)[0]


def test_the_pool_is_filled_in_an_order_of_its_seed_and_pass(tmp_path):
    """Of one file, so that the order of files has no part in it. By chance 57 % are the same."""
    (path,) = corpus.write_numbered(tmp_path, 2000, shards=1)

    def first_of_two_passes(seed):
        stream = iter(corpus.training_batches([path], batch_size=BATCH_SIZE, seed=seed, pool_size=300))
        read = []
        while len(read) < 2300:
            read += numbers(next(stream))
        return set(read[:200]), set(read[2000 + MOST_ROWS :][:200])

    (one, two), (other, _) = first_of_two_passes(7), first_of_two_passes(8)
    assert len(one & other) < 120
    assert len(one & two) < 120


def test_files_are_read_in_an_order_of_the_seed_and_the_pass(tmp_path):
    """In pools of one example, which follow the files. By chance a third is the same."""
    paths = corpus.write_numbered(tmp_path, 60, shards=20, longest=6)

    def first_of_two_passes(seed):
        stream = iter(corpus.training_batches(paths, batch_size=12, seed=seed, pool_size=1))
        read = []
        while len(read) < 100:
            read += numbers(next(stream))
        return set(read[:20]), set(read[60:80])

    (one, two), (other, _) = first_of_two_passes(7), first_of_two_passes(8)
    assert len(one & two) < 13 and len(one & other) < 13


def places(folder, seed):
    """The place in each pool of the batch that was left over before: ten batches of a length, in pools of all."""
    path = str(folder / f"even{seed}")
    examples = ({"inputs": [number + 10, 5, 1], "targets": [6, 6, 1]} for number in range(100))
    sharding.write_shards(examples, [path], seed=0)
    stream = iter(corpus.training_batches([path], batch_size=30, seed=seed, pool_size=100))
    left_over, found = set(range(100)).difference(*(numbers(next(stream)) for _ in range(9))), []
    for _ in range(8):
        pool = [set(numbers(next(stream))) for _ in range(10)]
        found.append(pool.index(left_over))
        left_over = set(range(100)).difference(*(batch for batch in pool if batch != left_over))
    return found


def test_the_batches_of_each_pool_come_in_an_order_of_their_own(tmp_path):
    assert len(set(places(tmp_path, 7))) > 2


@pytest.mark.long
def test_the_order_of_a_pools_batches_follows_from_the_seed(tmp_path):
    assert places(tmp_path, 7) == places(tmp_path, 7) != places(tmp_path, 8)


def test_a_pass_leaves_out_exactly_what_the_limits_say(paths, originals):
    kept = {n for n, example in originals.items() if 5 <= max(map(len, example.values())) <= 14}
    stream = iter(corpus.training_batches(paths, batch_size=BATCH_SIZE, max_length=14, min_length=5, pool_size=300))
    counts, total = collections.Counter(), 0
    while total < 3 * len(kept):
        batch = numbers(next(stream))
        counts.update(batch)
        total += len(batch)
    assert set(counts) == kept
    assert set(counts.values()) <= {2, 3, 4} and sum(count == 3 for count in counts.values()) > len(kept) - 200


# With BPE-dropout.


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """(encoders, paths) of sentences that are all different."""
    folder = tmp_path_factory.mktemp("text")
    pairs = list(dict.fromkeys(corpus.sentence_pairs(800)))
    subwords.train_sentencepiece([line for pair in pairs for line in pair], str(folder / "vocab"), 330)
    encoder = vocabulary.SentencePieceEncoder(str(folder / "vocab.model"))
    paths = [str(folder / f"text-train-{i:05d}-of-00002") for i in range(2)]
    examples = ({"inputs": [*encoder.encode(a), 1], "targets": [*encoder.encode(b), 1]} for a, b in pairs)
    sharding.write_shards(examples, paths, seed=0)
    return {"inputs": encoder, "targets": encoder}, paths, pairs


def decoded(batch, encoders):
    rows = zip(batch["inputs"].numpy(), batch["targets"].numpy(), strict=True)
    return [(encoders["inputs"].decode(a), encoders["targets"].decode(b)) for a, b in rows]


def test_dropout_changes_pieces_of_both_sides_and_loses_no_text(text):
    encoders, paths, pairs = text
    longest = max(len(encoders["inputs"].encode(side)) for pair in pairs for side in pair) + 1
    for probability, max_length in ((0.2, 0), (1.0, longest)):
        arguments = {"batch_size": 2000, "bpe_dropout": probability, "encoders": encoders, "max_length": max_length}
        stream = iter(corpus.training_batches(paths, seed=1, pool_size=300, **arguments))
        found, cuts = collections.Counter(), collections.defaultdict(lambda: (set(), set()))
        while sum(found.values()) < 3 * len(pairs):
            batch = next(stream)
            widest = max(batch[side].shape[1] for side in batch)
            assert widest <= (max_length or 2000) and len(batch["inputs"]) * widest <= 2000
            for pair, *rows in zip(decoded(batch, encoders), *(batch[side].numpy() for side in batch), strict=True):
                found[pair] += 1
                for cut, row in zip(cuts[pair], rows, strict=True):
                    cut.add(tuple(row[row > 0]))
        assert set(found) == set(pairs) and set(found.values()) <= {2, 3, 4}
        if probability < 1:  # other pieces in another pass
            assert all(sum(len(both[side]) > 1 for both in cuts.values()) > 0.5 * len(pairs) for side in (0, 1))


def test_dropout_follows_from_the_seed_and_survives_a_checkpoint(text, tmp_path):
    encoders, paths, _ = text

    def stream(**changes):
        arguments = {"batch_size": 500, "seed": 1, "pool_size": 200, "bpe_dropout": 0.3, "encoders": encoders}
        return iter(corpus.training_batches(paths, **{**arguments, **changes}))

    corpus.assert_goes_on_identically(stream, tmp_path, read=27)
    first, other = (
        [next(batches)["inputs"].numpy().tolist() for _ in range(5)] for batches in (stream(), stream(seed=2))
    )
    assert first != other


@pytest.mark.long
def test_the_draws_of_dropout_follow_from_the_seed_the_pass_and_the_side(text, tmp_path):
    """In a fixed order, of pairs of equal sides."""
    encoders, _, pairs = text
    path = str(tmp_path / "same")
    ids = [[*encoders["inputs"].encode(one), 1] for one, _ in pairs[:100]]
    sharding.write_shards([{"inputs": one, "targets": one} for one in ids], [path], seed=0)
    options = {"batch_size": 2000, "pool_size": 100, "shuffle": False, "bpe_dropout": 0.3, "encoders": encoders}

    def cuts(seed):
        """How each sentence was cut, pass after pass."""
        found = collections.defaultdict(list)
        for batch in itertools.islice(iter(corpus.training_batches([path], seed=seed, **options)), 8):
            rows = [[row[row > 0].tolist() for row in batch[side].numpy()] for side in ("inputs", "targets")]
            for text, *both in zip(decoded(batch, encoders), *rows, strict=True):
                found[text].append(both)
        return found

    one, again, other = cuts(1), cuts(1), cuts(2)
    assert one == again
    assert sum(one[text][0] != other[text][0] for text in one) > 50
    assert sum(passes[0] != passes[1] for passes in one.values() if len(passes) > 1) > 50
    assert sum(left != right for (left, right), *_ in one.values()) > 50


def test_each_side_has_its_own_merges_and_its_own_limit(tmp_path):
    """All merges are left out where the characters are within the limit, and none where they are beyond it."""
    sentence, encoders, longest = ("the red house is old", "das rote Haus ist alt"), {}, {}
    for side, words in zip(("inputs", "targets"), sentence, strict=True):
        subwords.train_sentencepiece([words] * 9, str(tmp_path / side), 290)
        encoders[side] = vocabulary.SentencePieceEncoder(str(tmp_path / f"{side}.model"))
        longest[side] = len(f" {words}") + 1  # with EOS
    whole = {side: [*encoders[side].encode(words), 1] for side, words in zip(encoders, sentence, strict=True)}
    path = str(tmp_path / "one")
    sharding.write_shards([whole], [path], seed=0)
    assert longest == {"inputs": 22, "targets": 23}
    for limit, cut in ((23, ("inputs", "targets")), (22, ("inputs",)), (21, ())):
        options = {"bpe_dropout": 1.0, "encoders": encoders, "max_length": limit}
        batch = next(iter(corpus.training_batches([path], batch_size=limit, **options)))
        assert decoded(batch, encoders)[0] == sentence
        lengths = {side: batch[side].shape[1] for side in batch}
        assert lengths == {side: longest[side] if side in cut else len(whole[side]) for side in encoders}


def test_copies_have_one_cut(text):
    encoders, paths, _ = text
    batch = next(iter(corpus.training_batches(
        paths, Problem(was_copy=True), batch_size=500, bpe_dropout=0.3, encoders=encoders
    )))  # fmt: skip
    assert np.array_equal(batch["inputs"], batch["targets"])


def test_the_shapes_of_a_ladder_hold_what_dropout_makes(text):
    encoders, paths, _ = text
    facts, hparams = manifests.read_facts(paths), HParams(batch_size=500, bpe_dropout=0.3)
    longest = {side: max(map(int, lengths)) for side, lengths in facts["side_lengths"].items()}
    ladder = batching.problem_ladder(Problem(), hparams, paths, encoders, facts)
    assert ladder.widest == {side: 2 * count for side, count in longest.items()}
    limited = hparams.override_from_dict({"max_length": max(longest.values()) + 3})
    ladder = batching.problem_ladder(Problem(), limited, paths, encoders, facts)
    assert max(ladder.widest.values()) == max(longest.values()) + 3
    for batch in batching.training_batches(Problem(), limited, paths, encoders, ladder).take(30):
        assert [len(batch["inputs"]), *(batch[side].shape[1] for side in batch)] in ladder.shapes.tolist()


def test_dropout_of_a_vocabulary_without_merges_is_refused_at_once(paths):
    encoders = dict.fromkeys(("inputs", "targets"), vocabulary.ByteTextEncoder())
    with pytest.raises(UserError, match=r"bpe_dropout=0.1.*has no merges"):
        corpus.training_batches(paths, batch_size=256, bpe_dropout=0.1, encoders=encoders)
