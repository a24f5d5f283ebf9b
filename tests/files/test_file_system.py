"""The functions on local paths and on those of TensorFlow's file systems agree; ram:// is one of these."""

import os

import pytest

from t2t_lite.files import file_system


@pytest.fixture(params=["local", "ram"])
def folder(request, tmp_path):
    if request.param == "local":
        return str(tmp_path / "folder")
    path = f"ram://{tmp_path.name}"
    request.addfinalizer(lambda: file_system.remove(path) if file_system.exists(path) else None)
    return path


def write(path, data):
    with file_system.create(path) as file:
        file.write(data)


def test_files_and_folders(folder):
    file_system.make_folders(folder + "/inner")
    file_system.make_folders(folder + "/inner")  # it may be there
    write(folder + "/one", b"123")
    write(folder + "/inner/two.tsv", b"")
    assert file_system.list_names(folder) == ["inner", "one"]
    assert file_system.find_files(folder, [".tsv"]) == [os.path.join(folder, "inner", "two.tsv")]
    assert file_system.size(folder + "/one") == 3
    kinds = {name: file_system.status(os.path.join(folder, name)).is_folder for name in ("inner", "one")}
    assert kinds == {name: file_system.is_folder(os.path.join(folder, name)) for name in kinds}
    assert kinds == {"inner": True, "one": False}
    file_system.copy(folder + "/one", folder + "/inner/two.tsv")
    file_system.rename(folder + "/one", folder + "/three")
    assert file_system.size(folder + "/inner/two.tsv") == 3
    assert file_system.list_names(folder) == ["inner", "three"]
    file_system.remove(folder + "/three")
    file_system.remove_if_there(folder + "/three")
    file_system.remove(folder + "/inner")
    assert not file_system.exists(folder + "/inner")


@pytest.mark.parametrize("function", [file_system.status, file_system.list_names, file_system.remove])
def test_what_is_missing_is_pythons_error(folder, function):
    file_system.make_folders(folder)
    with pytest.raises(FileNotFoundError):
        function(folder + "/nothing")


def test_the_time_of_a_local_file(tmp_path):
    (tmp_path / "file").touch()
    os.utime(tmp_path / "file", ns=(1, 1_700_000_000_000_000_002))
    assert file_system.status(str(tmp_path / "file")) == (0, 1_700_000_000_000_000_002, False)


def test_a_link_to_a_folder_is_removed_and_not_the_folder(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    file_system.remove(str(tmp_path / "link"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").exists()
