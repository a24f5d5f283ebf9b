"""Files are read whole and written whole or not at all; an output never replaces an input."""
# Nearest tests of: t2t_lite/files/file_system.py

import gzip
import io
import os
import subprocess

import pytest

from t2t_lite import files
from t2t_lite.errors import Failure, UserError
from t2t_lite.files import check_outputs, file_system, find_files, list_files, plain_folder, plain_path
from tests import faults
from tests.processes import python


def contents(folder):
    """{name: bytes} of the files in a folder and in its folders."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


WRITERS = {  # functions of a path, and what they write
    "bytes": (lambda path: files.write_bytes(path, b"new content", 3.5), b"new content"),
    "JSON": (lambda path: files.write_json(path, {"b": 1, "a": "ö"}), '{\n "b": 1,\n "a": "ö"\n}\n'.encode()),
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_on_a_disk_that_is_full_at_any_byte_the_old_file_stays_alone(tmp_path, writer):
    write, written = WRITERS[writer]
    (tmp_path / "x").write_bytes(b"old")
    for byte in range(len(written)):
        with pytest.raises(Failure, match="x: the disk is full"), faults.full_disk(byte):
            write(str(tmp_path / "x"))
        assert contents(tmp_path) == {"x": b"old"}
    with faults.full_disk(len(written)):
        write(str(tmp_path / "x"))
    assert contents(tmp_path) == {"x": written}


@pytest.mark.parametrize("writer", WRITERS)
def test_after_ctrl_c_at_any_line_there_is_the_old_file_or_the_new_one_alone(tmp_path, writer):
    write, written = WRITERS[writer]
    with faults.interrupted_at(0, files, file_system) as lines:
        write(str(tmp_path / "x"))
    for line in range(1, len(lines) + 1):
        (tmp_path / "x").write_bytes(b"old")
        with pytest.raises(KeyboardInterrupt), faults.interrupted_at(line, files, file_system):
            write(str(tmp_path / "x"))
        assert contents(tmp_path) in ({"x": b"old"}, {"x": written}), lines[line - 1]


def test_a_rename_that_fails_leaves_the_old_file_alone(tmp_path):
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(Failure, match=r"x: .*disk"), faults.failing(os, "replace", 1, OSError(5, "Input/output error")):
        files.write_bytes(str(tmp_path / "x"), b"new")
    with pytest.raises(KeyError), files.replacing(str(tmp_path / "x")) as path:
        file_system.create(path).close()
        raise KeyError
    assert contents(tmp_path) == {"x": b"old"}


def test_a_file_gets_the_time_that_is_asked_for(tmp_path):
    for seconds in (0, 1_700_000_000.5):
        files.write_bytes(str(tmp_path / "x"), b"1", seconds)
        assert (tmp_path / "x").stat().st_mtime == seconds
    files.write_bytes(str(tmp_path / "x"), b"1")
    assert (tmp_path / "x").stat().st_mtime > 1_700_000_000.5


def test_a_file_is_read_up_to_the_most_that_is_allowed(tmp_path):
    data = bytes(range(251)) * 9000  # several parts
    (tmp_path / "x").write_bytes(data)
    for most in (None, len(data), len(data) + 1):
        assert files.read_bytes(str(tmp_path / "x"), most) == data
    for most in (0, 2**20, len(data) - 1):
        with pytest.raises(UserError, match=f"x: .*larger than {most:,} bytes"):
            files.read_bytes(str(tmp_path / "x"), most)


def test_json_is_read_by_the_form_that_is_asked_for(tmp_path):
    path = str(tmp_path / "x.json")
    files.write_json(path, ["ü", 2])
    assert files.read_json(path, list) == ["ü", 2]
    with pytest.raises(UserError, match=r"x\.json: expected an object"):
        files.read_json(path)


def test_files_are_copied_under_their_names(tmp_path):
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "to").mkdir()
    files.copy_files({"a": str(tmp_path / "one"), "in/side/b": str(tmp_path / "one")}, str(tmp_path / "to"))
    assert contents(tmp_path / "to") == {"a": b"1", "in/side/b": b"1"}


def test_what_is_checked_before_long_work_leaves_nothing(tmp_path):
    files.check_writable(str(tmp_path))
    files.check_is_no_file(str(tmp_path))
    files.check_is_no_file(str(tmp_path / "absent"))
    assert not os.listdir(tmp_path)
    (tmp_path / "file").write_text("")
    for check in (files.check_writable, files.check_is_no_file):
        with pytest.raises(UserError, match="file"):
            check(str(tmp_path / "file"))
    with faults.full_disk(0), pytest.raises(Failure, match="the disk is full"):
        files.check_writable(str(tmp_path))
    assert os.listdir(tmp_path) == ["file"]


@pytest.fixture(params=["local", "ram"])
def folder(request, tmp_path):
    """A path for a new folder, of this machine and of a file system of TensorFlow's."""
    if request.param == "local":
        return str(tmp_path / "folder")
    path = f"ram://{tmp_path.name}"
    request.addfinalizer(lambda: file_system.remove(path) if file_system.exists(path) else None)
    return path


def test_a_stream_is_read_from_any_place(folder):
    files.make_folder(folder)
    data = bytes(range(256)) * 9000
    files.write_bytes(f"{folder}/a", data)
    with files.open_stream(f"{folder}/a") as stream:
        assert (stream.read(3), stream.tell()) == (data[:3], 3)
        assert stream.seek(-5, io.SEEK_END) == len(data) - 5 and stream.read() == data[-5:]
        assert (
            stream.seek(70) == 70
            and stream.seek(30, io.SEEK_CUR) == 100
            and stream.read(2**21) == data[100 : 100 + 2**21]
        )
        with pytest.raises(OSError, match=r"Invalid argument|before"):
            stream.seek(-1)
    files.write_bytes(f"{folder}/a.gz", gzip.compress(data))
    with files.open_stream(f"{folder}/a.gz") as stream, gzip.open(stream) as unpacked:
        assert unpacked.read() == data
    assert files.read_bytes(f"{folder}/a", len(data)) == data
    assert list_files(folder, r"a\..*") == [f"{folder}/a.gz"]


def test_files_and_folders(folder):
    file_system.make_folders(folder + "/inner")
    file_system.make_folders(folder + "/inner")  # it may be there
    files.write_bytes(folder + "/one", b"123")
    with file_system.create(folder + "/inner/two.tsv", "ab") as file:
        file.write(b"4")
    with file_system.create(folder + "/inner/two.tsv", "ab") as file:
        file.write(b"56789")
    assert file_system.list_names(folder) == ["inner", "one"]
    assert find_files(folder, [".tsv"]) == [f"{folder}/inner/two.tsv"]
    assert [file_system.size(folder + name) for name in ("/one", "/inner/two.tsv")] == [3, 6]
    for name, is_folder in (("inner", True), ("one", False)):
        assert (
            file_system.status(f"{folder}/{name}").is_folder == file_system.is_folder(f"{folder}/{name}") == is_folder
        )
    file_system.copy(folder + "/one", folder + "/inner/copy")
    file_system.rename(folder + "/inner/two.tsv", folder + "/one")
    file_system.rename(folder + "/one", folder + "/three")
    assert [files.read_bytes(folder + name) for name in ("/inner/copy", "/three")] == [b"123", b"456789"]
    assert file_system.list_names(folder) == ["inner", "three"]
    file_system.remove(folder + "/three")
    file_system.remove_if_there(folder + "/three")
    file_system.remove(folder + "/inner")
    assert not file_system.exists(folder + "/inner")
    for function in (file_system.status, file_system.list_names, file_system.remove):
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
    assert contents(tmp_path) == {"kept/file": b""} and os.listdir(tmp_path) == ["kept"]


@pytest.mark.parametrize("folder", ["run", "run[1]", "run*", "run?", "run {a,b}", "run\\d"])
def test_no_character_of_a_folders_name_has_a_meaning(tmp_path, folder):
    for name in (folder, "run1", "runs"):
        (tmp_path / name).mkdir()
        for file in ("a-10.x", "a-1.x", "a-1.y", "a-1.xy", "ba-1.x"):
            (tmp_path / name / file).write_text("")
    found = list_files(str(tmp_path / folder), r"a-\d+\.x")
    assert found == [str(tmp_path / folder / "a-1.x"), str(tmp_path / folder / "a-10.x")]


def test_a_folder_that_is_none_holds_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert list_files(str(tmp_path / "file"), ".*") == list_files(str(tmp_path / "absent"), ".*") == []


def test_files_at_any_depth_without_hidden_ones_and_each_once(tmp_path):
    for name in ("b/c/1.X", "b/2.x", "b/2.y", "a.x", ".hidden/3.x", "b/.4.x"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "5.x").write_text("")
    for name, target in {"b/c/up": "in/b", "b/self": "in/b/self", "out": "other", "b/again": "other"}.items():
        (tmp_path / "in" / name).symlink_to(tmp_path / target)
    found = find_files(str(tmp_path / "in"), (".x",))
    assert found == [str(tmp_path / "in" / name) for name in ("a.x", "b/2.x", "b/again/5.x", "b/c/1.X", "out/5.x")]


def test_folders_that_link_to_each_other_are_read_once_on_each_way(tmp_path):
    for name in "ab":
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "1.x").write_text("")
    (tmp_path / "in/a/to_b").symlink_to(tmp_path / "in/b")
    (tmp_path / "in/b/to_a").symlink_to(tmp_path / "in/a")
    found = find_files(str(tmp_path / "in"), (".x",))
    assert found == [str(tmp_path / "in" / name) for name in ("a/1.x", "a/to_b/1.x", "b/1.x", "b/to_a/1.x")]


@pytest.mark.parametrize("name", ["run [v1]", "run[1]", "run*", "run?", "run\\d"])
def test_tensorflow_reads_and_deletes_checkpoints_in_any_folder(tmp_path, name, monkeypatch):
    import tensorflow as tf

    monkeypatch.chdir(tmp_path)
    for folder in (name, "run1", "runs"):
        os.mkdir(folder)
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), plain_folder(folder), 2)
        for step in range(1, 4):
            manager.save(step)
        assert sorted(path for path in os.listdir(folder) if path.endswith(".index")) == [
            "ckpt-2.index",
            "ckpt-3.index",
        ]
        assert tf.train.load_checkpoint(plain_path(f"{folder}/ckpt-2")).get_variable_to_shape_map()
    assert plain_path("run1/ckpt-2") == "run1/ckpt-2"
    assert plain_path("gs://a/run[1]/ckpt-2") == "gs://a/run[1]/ckpt-2"


def test_a_users_file_that_ends_in_incomplete_stays(tmp_path):
    (tmp_path / "X.incomplete").write_text("mine")
    files.write_bytes(str(tmp_path / "X"), b"new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"X": "new", "X.incomplete": "mine"}


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A text under many names: `in`, and links to it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text("x\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "to_folder").symlink_to("folder")
    (tmp_path / "hard").hardlink_to(tmp_path / "in")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def test_an_output_that_is_an_input_is_refused(texts):
    for out in ("in", "./in", "folder/../in", "link", "hard", str(texts / "in"), "to_folder/../in"):
        with pytest.raises(UserError, match="would overwrite --source=in"):
            check_outputs({"--source": "in", "--reference": ["", None]}, {"--to": out})
        with pytest.raises(UserError, match="would overwrite --refs=in"):
            check_outputs({"--source": "other", "--refs": ["more", "in"]}, {"--plot": "plot", "--to": out})
    with pytest.raises(UserError, match=r"--to=out, .*out\.t2t_lite_incomplete.*would overwrite"):
        check_outputs({"--source": "out.t2t_lite_incomplete"}, {"--to": "out"})
    with pytest.raises(UserError, match="would overwrite --source=new/"):
        check_outputs({"--source": "new/"}, {"--to": "./new"})
    assert (texts / "in").read_text() == "x\n"


def test_an_output_that_is_a_folder_is_refused(texts):
    for out in ("folder", "folder/", "to_folder"):
        with pytest.raises(UserError, match=rf"^{out}: is a folder\. Expected a file to write"):
            check_outputs({}, {"--to": out})


def test_two_outputs_of_one_name_are_refused(texts):
    for one, other in (
        ("out", "./out"),
        ("link", "hard"),
        ("folder/x", "to_folder/x"),
        ("x", "x.t2t_lite_incomplete.json"),
    ):
        with pytest.raises(UserError, match=f"is the same file as --to={one}"):
            check_outputs({}, {"--to": one, "--alignments": other})
    with pytest.raises(UserError, match=r"same file as --to=a"):
        check_outputs({}, {"--to": ["a", "b", "a"]})


def test_what_can_be_used_more_than_once(texts):
    check_outputs({"--source": "in", "--reference": "in"}, {"--to": "out", "--alignments": "alignments"})
    check_outputs({"--source": "pipe"}, {"--to": "pipe"})
    check_outputs({"--source": "-"}, {"--to": "-"})
    check_outputs({}, {"--to": "/dev/null", "--alignments": "/dev/null"})
    check_outputs({"--source": None}, {"--to": None, "--alignments": ""})


def test_outputs_in_a_working_folder_that_is_deleted(tmp_path, monkeypatch):
    (tmp_path / "in").write_text("a")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    check_outputs({"--source": str(tmp_path / "in")}, {"--to": "-", "--alignments": str(tmp_path / "out")})
    with pytest.raises(UserError, match=r"^out: cannot be written: its folder does not exist"):
        check_outputs({}, {"--to": "out"})


def test_standard_streams_that_are_files(texts):
    """As in `< in` with an output that is in; the shell opened it already."""
    program = "import sys; from t2t_lite.files import check_outputs; check_outputs(*map(eval, sys.argv[1:]))"
    for inputs, outputs, words in (
        ("{'--source': '-'}", "{'--to': 'link'}", "would overwrite --source=-,"),
        ("{'--source': 'out'}", "{'--to': '-'}", "would overwrite --source=out,"),
        ("{'--source': '-'}", "{'--to': 'other'}", ""),
    ):
        with open("in") as stdin, open("out", "w") as stdout:
            streams = {"capture_output": False, "stdin": stdin, "stdout": stdout, "stderr": subprocess.PIPE}
            said = python(program, inputs, outputs, **streams).stderr
        assert words in said and bool(words) == bool(said)
    for outputs, words in (("{'--to': '-'}", ""), ("{'--to': ['-', '-']}", "is the same file as --to=-")):  # pipes
        said = python(program, "{'--source': '-'}", outputs, input="").stderr
        assert words in said and bool(words) == bool(said)


def test_a_link_to_a_folder_with_a_pattern_in_its_name_ends_with_its_process(tmp_path):
    (tmp_path / "run[1]").mkdir()
    program = "import os, sys; from t2t_lite.files import plain_folder; print(os.path.realpath(plain_folder('run[1]')))"
    done = python(program, env=os.environ | {"TMPDIR": str(tmp_path)}, cwd=tmp_path)
    assert done.stdout == f"{tmp_path}/run[1]\n" and os.listdir(tmp_path) == ["run[1]"]
