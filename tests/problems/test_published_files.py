"""Tables of published files, and the splits that have some."""

import sys

import pytest

from t2t_lite.data.problem import Problem
from t2t_lite.problems.published_files import PublishedFiles, files_of_splits, read_table, words


def test_a_table_has_typed_rows_and_empty_ends(tmp_path, monkeypatch):
    (tmp_path / "tables_of_test").mkdir()
    (tmp_path / "tables_of_test" / "__init__.py").write_text("")
    (tmp_path / "tables_of_test" / "sizes.tsv").write_text("name\tcount\tlanguages\na b\t3\ten  de\nc\t5\n")
    monkeypatch.syspath_prepend(tmp_path)
    one, two = read_table("tables_of_test", "sizes", count=int, languages=words)
    assert one == ("a b", 3, ("en", "de")) and one._fields == ("name", "count", "languages")
    assert two == ("c", 5, ()) and type(two).__name__ == "sizes"
    sys.modules.pop("tables_of_test", None)


def test_only_splits_with_a_file_have_shards_and_training_alone_has_several():
    class Texts(PublishedFiles, Problem):
        name = "texts"
        train_shards = 7
        text_files = files_of_splits("in/{}.txt", "train", "valid")

    assert Texts.text_files == {"train": "in/train.txt", "eval": "in/valid.txt"}
    assert Texts().dataset_splits == [{"split": "train", "shards": 7}, {"split": "eval", "shards": 1}]
    assert files_of_splits("{}", "a", "b", "c")["test"] == "c"
    assert PublishedFiles.train_shards == 10


def test_all_files_are_found_before_the_vocabulary_is_made(tmp_path):
    class Texts(PublishedFiles, Problem):
        name = "texts"
        url = "http://nowhere.invalid/texts.zip"
        text_files = files_of_splits("in/{}.txt", "train", "valid")
        further_files = {"http://nowhere.invalid/words.txt": "words.txt"}  # noqa: RUF012

    (tmp_path / "in").mkdir()
    for name in ("in/train.txt", "in/valid.txt", "words.txt"):
        with pytest.raises(Exception, match=r"(words|texts)\.(txt|zip)"):
            Texts().prepare_generation("", str(tmp_path))
        (tmp_path / name).write_text("x\n")
    Texts().prepare_generation("", str(tmp_path))
    assert [str(path) for path in Texts().sources(str(tmp_path), "eval")] == [str(tmp_path / "in/valid.txt")]
