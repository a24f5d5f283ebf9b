"""What a process has open is told from other links, whose files are written in their place."""

import os

from t2t_lite.files.links import descriptor, written_path


def test_descriptors_under_all_their_names(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        number = file.fileno()
        (tmp_path / "link").symlink_to(f"/dev/fd/{number}")
        (tmp_path / "again").symlink_to("link")
        names = [f"/dev/fd/{number}", f"/proc/self/fd/{number}", f"/proc/{os.getpid()}/fd/{number}"]
        for name in [*names, tmp_path / "link", tmp_path / "again"]:
            assert descriptor(str(name)) == (os.getpid(), number)
            assert written_path(str(name)) == str(name)
    assert descriptor("/dev/stdout") == (os.getpid(), 1)


def test_other_links_lead_to_files(tmp_path):
    (tmp_path / "file").write_text("a")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "to be made").symlink_to("later")
    (tmp_path / "loop").symlink_to("loop")
    for name, target in (("file", "file"), ("link", "file"), ("to be made", "later"), ("loop", "loop")):
        assert descriptor(str(tmp_path / name)) is None
        assert written_path(str(tmp_path / name)) == str(tmp_path / target)
    assert [*map(written_path, ("absent", "gs://bucket/x", ""))] == ["absent", "gs://bucket/x", ""]
