"""The list of mistakes that `make mutants` tries stays one of lines that exist, with tests that exist."""

import pytest

from tests import mutants


@pytest.mark.whole
@pytest.mark.parametrize("path, line, mistake, tests", mutants.mutants())
def test_each_is_of_a_line_and_of_tests_that_exist(path, line, mistake, tests):
    assert (mutants.ROOT / path).read_text().count(line) == 1
    assert line != mistake
    assert all((mutants.ROOT / test.partition("::")[0]).exists() for test in tests.split())


@pytest.mark.whole
def test_no_mistake_is_listed_twice():
    rows = mutants.mutants()
    texts = {path: (mutants.ROOT / path).read_text() for path, *_ in rows}
    wrong = [(path, texts[path].replace(line, mistake)) for path, line, mistake, _ in rows]
    assert [row[:3] for row, text in zip(rows, wrong, strict=True) if wrong.count(text) > 1] == []


def test_a_file_is_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    (tmp_path / "a.py").write_text("one = 1\ntwo = 2\n")
    with pytest.raises(KeyError), mutants.mistaken("a.py", "one = 1", "one = 3"):
        assert (tmp_path / "a.py").read_text() == "one = 3\ntwo = 2\n"
        raise KeyError
    assert (tmp_path / "a.py").read_text() == "one = 1\ntwo = 2\n"
    with pytest.raises(ValueError, match="has 2 times"), mutants.mistaken("a.py", "= ", "=="):
        pass
