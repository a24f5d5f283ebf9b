import pytest

from t2t_lite import registry
from t2t_lite.extras.quickstart.commands import write_texts
from tests.data import corpus


@pytest.mark.parametrize("split, count", [("dev", 20), ("test", 10)])
def test_the_texts_of_a_split_line_by_line(tmp_path, split, count):
    counts = {"train": 100, "dev": 20, "test": 10}
    pairs = {name: corpus.sentence_pairs(counts[name], seed) for seed, name in enumerate(counts)}
    files = {name: corpus.write_corpus(tmp_path, name, pairs[name]).split(",") for name in counts}
    problem = registry.problem("translate_own")
    problem.configure(**{f"{name}_files": paths for name, paths in files.items()})
    problem.generate_data(str(tmp_path / "d"), str(tmp_path))
    paths = tmp_path / "source", tmp_path / "reference"
    write_texts(problem, str(tmp_path / "d"), split, list(map(str, paths)))
    lines = [path.read_text().splitlines() for path in paths]
    assert len(lines[0]) == count
    assert sorted(zip(*lines, strict=True)) == sorted(pairs[split])
