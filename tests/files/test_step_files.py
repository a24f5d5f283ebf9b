"""Files by step, and what is waited for."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.files import resumable
from t2t_lite.files.resumable import CHECKPOINTS, TRANSLATIONS, find, follow


@pytest.fixture
def folder(tmp_path):
    for name in ("ende-900", "ende-1000", "ende-flags.txt", ".ende-5.swp", ".ende-7", "ende-8.incomplete", "notes"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "ende-6").mkdir()
    for name in ("model.ckpt-20.index", "model.ckpt-3.index", "model.ckpt-20.data-00000-of-00001"):
        (tmp_path / name).write_text("x")
    return tmp_path


def test_files_by_step(folder):
    assert [file.step for file in find(str(folder), TRANSLATIONS)] == [900, 1000]
    for least in (4, 20):
        assert [file.path for file in find(str(folder), CHECKPOINTS, least)] == [str(folder / "model.ckpt-20")]
    assert not find(str(folder), CHECKPOINTS, 21)


def test_steps_are_digits_that_tensorflow_can_count(folder):
    (folder / "ende-٣").write_text("x\n")  # a digit to Python alone
    (folder / f"ende-{2**63 - 1}").write_text("x\n")
    assert [file.step for file in find(str(folder), TRANSLATIONS)] == [900, 1000, 2**63 - 1]
    (folder / f"ende-{2**63}").write_text("x\n")
    with pytest.raises(
        UserError, match=rf"ende-{2**63}: step {2**63} is more than 9,223,372,036,854,775,807, the highest"
    ):
        find(str(folder), TRANSLATIONS)


def test_two_of_a_step_are_an_error(folder):
    (folder / "deen-900").write_text("x\n")
    with pytest.raises(UserError, match="deen-900 and ende-900 are both of step 900"):
        find(str(folder), TRANSLATIONS)


def test_a_later_file_is_waited_for_and_an_incomplete_one_before_it(folder, monkeypatch):
    whole, slept = {900}, []

    def sleep(seconds):
        slept.append(seconds)
        whole.add(1000)
        if len(slept) == 2:
            (folder / "ende-1100").write_text("x\n")
            whole.add(1100)
        if len(slept) == 4:
            clock[0] += 61

    clock = [0.0]
    monkeypatch.setattr(resumable.time, "sleep", sleep)
    monkeypatch.setattr(resumable.time, "monotonic", lambda: clock[0])
    missing = lambda file: "" if file.step in whole else f"{file.path}: half"  # noqa: E731
    assert [file.step for file in follow(str(folder), TRANSLATIONS, 0, 1, missing)] == [900, 1000, 1100]
    assert len(slept) == 4


def test_what_is_still_missing_at_the_end_is_said(folder):
    files = follow(str(folder), TRANSLATIONS, missing=lambda file: "half" * (file.step == 1000))
    assert next(files).step == 900
    with pytest.raises(UserError, match="half"):
        next(files)
    with pytest.raises(UserError, match="nowhere: no such folder"):
        next(follow(str(folder / "nowhere"), TRANSLATIONS))
