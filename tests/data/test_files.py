"""Reading folders through `tf.io.gfile`."""

import pytest

from t2t_lite.data.files import list_files


@pytest.mark.parametrize("folder", ["run", "run[1]", "run*", "run?", "run {a,b}", "run\\d"])
def test_no_character_of_a_folders_name_has_a_meaning(tmp_path, folder):
    for name in (folder, "run1", "runs"):
        (tmp_path / name).mkdir()
        for file in ("a-1.x", "a-10.x", "a-1.y"):
            (tmp_path / name / file).write_text("")
    found = list_files(str(tmp_path / folder), r"a-\d+\.x")
    assert found == [str(tmp_path / folder / "a-1.x"), str(tmp_path / folder / "a-10.x")]


def test_a_folder_that_is_none_holds_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert list_files(str(tmp_path / "file"), ".*") == list_files(str(tmp_path / "absent"), ".*") == []
