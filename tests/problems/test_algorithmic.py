import itertools

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from tests.data.stored import read_examples


@pytest.mark.parametrize(
    ("name", "expected"),
    [("algorithmic_identity_decimal40", lambda x: x), ("algorithmic_reverse_decimal40", lambda x: x[::-1])],
)
def test_targets_follow_the_rule(tmp_path, name, expected):
    problem = registry.problem(name)
    problem.max_cases = 300
    problem.generate_data(str(tmp_path), str(tmp_path))
    encoder = problem.feature_encoders(str(tmp_path))["inputs"]
    assert encoder.vocab_size == 12
    lengths = set()
    for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL):
        for example in read_examples(Records(problem, str(tmp_path), split).paths):
            inputs, targets = encoder.decode(example["inputs"]).split(), encoder.decode(example["targets"]).split()
            assert targets == expected(inputs)
            assert example["inputs"] == [*encoder.encode(" ".join(inputs)), 1]
            lengths.add(len(inputs))
    assert min(lengths) == 1
    assert max(lengths) == 40
    assert problem.eval_decode_metric == "exact_sequence_accuracy"
    assert problem.vocabulary_files(str(tmp_path)) == []


def test_sums_of_numbers():
    problem = registry.problem("algorithmic_addition_decimal40")
    encoder, lengths, numbers = problem.feature_encoders("")["inputs"], set(), set()
    stream = problem.generate_encoded_samples("", "", DatasetSplit.TRAIN)
    for example in (next(stream) for _ in range(2000)):
        symbols, total = ([*map(int, encoder.decode(example[side]).split())] for side in ("inputs", "targets"))
        assert all(2 <= i < encoder.vocab_size for i in example["inputs"][:-1])
        middle = symbols.index(10)
        texts = ["".join(map(str, digits[::-1])) for digits in (symbols[:middle], symbols[middle + 1 :], total)]
        assert [str(int(text)) for text in texts] == texts  # no zeros in front
        assert int(texts[0]) + int(texts[1]) == int(texts[2])
        lengths.add(len(symbols))
        numbers.update(texts[:2])
    assert {*map(str, range(10))} < numbers
    assert lengths == {*range(3, 41)}


def first(split, seed):
    problem = registry.problem("algorithmic_reverse_decimal40")
    problem.random_seed = seed
    return [*itertools.islice(problem.generate_encoded_samples("", "", split), 20)]


def test_the_dev_set_is_not_the_training_set_and_the_seed_decides():
    train, dev = DatasetSplit.TRAIN, DatasetSplit.EVAL
    assert first(train, 1) == first(train, 1) != first(dev, 1) and first(train, 1) != first(train, 2)


@pytest.mark.parametrize(("name", "symbols"), [("identity", 10), ("reverse", 10), ("addition", 11)])
def test_symbols_lengths_and_sizes_are_tensor2tensors(name, symbols):
    """As of its algorithmic.py, but for dev_length."""
    settings = registry.problem(f"algorithmic_{name}_decimal40").generation_settings()
    lengths = {"train_length": 40, "dev_length": 40, "train_size": 100_000, "dev_size": 10_000}
    assert settings == {"num_symbols": symbols, **lengths}
