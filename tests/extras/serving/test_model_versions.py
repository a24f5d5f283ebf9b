"""Which versions of an export are served, with a stand-in for loading them."""

import shutil
import time
import types

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.serving import model_versions
from t2t_lite.extras.serving.model_versions import ModelVersions, watching
from t2t_lite.extras.serving.refusals import Refusal
from tests.processes import wait_for


class Export:
    def __init__(self, path):
        with open(f"{path}/saved_model.pb") as file:
            self.text = file.read()
        if self.text == "damaged":
            raise OSError("data loss\nin line 2")


def write(folder, version, text="good"):
    (folder / str(version)).mkdir(parents=True)
    (folder / str(version) / "saved_model.pb").write_text(text)


def opened(folder):
    versions = ModelVersions("translate", str(folder), Export)
    versions.refresh()
    return versions


def states(versions):
    return {version: state for version, state, *_ in versions.states()}


def replaced(folder):
    """Returns versions that serve 2 while a request still uses 1, and the export of 1."""
    write(folder, 1)
    versions = opened(folder)
    _, in_use = versions.find()
    write(folder, 2)
    versions.refresh()
    return versions, in_use


def test_the_newest_version_is_served(tmp_path):
    write(tmp_path, 2)
    write(tmp_path, 10)
    (tmp_path / "11").mkdir()  # still empty
    for name in ("12.t2t_lite_incomplete", "v13", "1" * 19):
        write(tmp_path, name)
    versions = ModelVersions("translate", str(tmp_path), Export)
    assert not versions.is_available() and versions.states() == []
    versions.refresh()
    assert versions.is_available() and str(versions) == "translate, version 10"
    assert versions.find()[0] == versions.find(10)[0] == 10 and states(versions) == {10: "AVAILABLE"}
    with pytest.raises(Refusal, match=r"Servable not found for request: Specific\(translate, 2\)") as raised:
        versions.find(2)
    assert raised.value.code == "NOT_FOUND"
    with pytest.raises(Refusal, match="Could not find version 2 of model translate"):
        versions.states(2)


def test_one_version_is_not_the_folder_of_all(tmp_path):
    write(tmp_path, 1)
    for ending in ("", "/"):
        with pytest.raises(UserError, match=rf"contains no exports.* use the folder that contains it, {tmp_path}\.$"):
            ModelVersions("translate", f"{tmp_path}/1{ending}", Export).refresh()


def test_a_retired_version_lives_until_its_last_request_is_answered(tmp_path):
    versions, in_use = replaced(tmp_path)
    assert versions.find()[0] == 2 and states(versions) == {1: "UNLOADING", 2: "AVAILABLE"}
    assert in_use.text == "good"
    del in_use
    assert [version for version, *_ in versions.states()] == [2, 1], "the newest first"
    assert versions.states(1) == [(1, "END", "OK", "")]
    assert states(versions) == {1: "END", 2: "AVAILABLE"}
    shutil.rmtree(tmp_path / "2")  # back to the version before
    versions.refresh()
    assert versions.find()[0] == 1 and states(versions) == {1: "AVAILABLE", 2: "END"}


def test_nothing_to_serve(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UserError, match=str(folder)):
            opened(folder)
    write(tmp_path, 1, "damaged")
    with pytest.raises(UserError, match=r"1: cannot be loaded: data loss. Export"):
        opened(tmp_path)


def test_an_older_version_is_served_at_the_start_if_the_newest_is_damaged(tmp_path):
    for version, text in ((1, "good"), (2, "good"), (3, "damaged"), (10, "damaged")):
        write(tmp_path, version, text)
    versions = ModelVersions("translate", str(tmp_path), Export)
    with pytest.raises(UserError, match="10: cannot be loaded: data loss"):
        versions.refresh()
    assert versions.find()[0] == 2 and states(versions) == {10: "END", 3: "END", 2: "AVAILABLE"}


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_version_that_is_loaded_again_while_its_last_request_is_answered(tmp_path):
    """A damaged newer version changes nothing, and what is freed does not end what is served."""
    versions, in_use = replaced(tmp_path)
    write(tmp_path, 3, "damaged")
    with pytest.raises(UserError, match="3: cannot be loaded"):
        versions.refresh()
    assert states(versions) == {1: "UNLOADING", 2: "AVAILABLE", 3: "END"} and versions.find()[0] == 2
    for version in (2, 3):
        shutil.rmtree(tmp_path / str(version))
    versions.refresh()
    del in_use
    assert states(versions) == {1: "AVAILABLE", 2: "END", 3: "END"} and versions.find()[0] == 1


@pytest.mark.parametrize("calls", [{1, 2}, {2}], ids=["at once", "when a change has been seen"])
def test_a_failure_while_serving(tmp_path, monkeypatch, caplog, calls):
    """`watch` goes on, and sees what has changed as soon as it can."""
    write(tmp_path, 1)
    versions = opened(tmp_path)
    write(tmp_path, 2)
    list_names, made = model_versions.list_names, []

    def fail(path):
        made.append(path)
        if len(made) in calls:
            raise Failure(f"{path}: too many files are open.")
        return list_names(path)

    def looks():
        yield False
        assert "are open. translate, version 1, is still served." in caplog.text
        assert versions.find()[0] == 1
        yield False
        assert versions.find()[0] == 2

    monkeypatch.setattr(model_versions, "list_names", fail)
    look = looks()
    versions.watch(0, types.SimpleNamespace(wait=lambda seconds: next(look, True)))
    assert caplog.text.count("still served") == 1


@pytest.mark.slow
def test_changes_while_serving(tmp_path, caplog):
    """A damaged newer version and a folder that vanishes leave what is loaded in place."""
    caplog.set_level("INFO")
    folder = tmp_path / "export"
    write(folder, 1)
    versions = opened(folder)

    with watching(versions, 0.02):
        write(folder, 2, "damaged")
        wait_for(lambda: "2: cannot be loaded: data loss" in caplog.text)
        assert "translate, version 1, is still served" in caplog.text and versions.find()[0] == 1
        assert versions.states(2)[0][1:3] == ("END", "INTERNAL")
        (folder / "2" / "saved_model.pb").write_text("mended")
        wait_for(lambda: versions.find()[0] == 2 and states(versions)[1] == "END")
        folder.rename(tmp_path / "elsewhere")  # at once
        wait_for(lambda: caplog.records[-1].levelname == "WARNING" and str(folder) in caplog.records[-1].message)
        assert versions.find()[1].text == "mended" and caplog.text.count("cannot be loaded") == 1


def test_a_look_that_is_under_way_ends_before_the_server_does():
    done = []

    def watch(seconds, stop):
        stop.wait(60)
        time.sleep(0.3)  # reads the folder
        done.append(seconds)

    with pytest.raises(KeyboardInterrupt), watching(types.SimpleNamespace(watch=watch), 5):
        raise KeyboardInterrupt
    assert done == [5]
