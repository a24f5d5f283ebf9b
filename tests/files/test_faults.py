"""Every reader with every fault of a file: it reads the file, or says in one line that names it what is wrong."""

import os
import re

import pytest

from t2t_lite.errors import UserError
from t2t_lite.files import pipes
from tests.files.readers import FAULTS, READ, READERS


@pytest.mark.parametrize("name", READERS)
def test_a_fault_is_read_or_named_in_one_line(tmp_path, monkeypatch, name):
    monkeypatch.setattr(pipes, "SECONDS_FOR_THE_OTHER_END", 0.1)
    content, read, answers = READERS[name]
    read(_file(tmp_path, "good", lambda path, content: path.write_bytes(content), content))
    wrong = []
    for fault, make in FAULTS.items():
        if fault == "shut" and not os.geteuid():
            continue  # root may read everything
        path, message = _file(tmp_path, fault.replace(" ", "_"), make, content), READ
        try:
            read(path)
        except UserError as error:
            message = str(error)
        expected = answers[fault]
        if READ in (message, expected):
            is_right = message == expected
        else:
            is_right = message.startswith(path) and message.isprintable() and re.search(expected, message)
        if not is_right:
            wrong.append(f"{fault}: expected {expected!r}, found {message!r}")
    assert not wrong, "\n".join(wrong)


def _file(folder, name, make, content):
    make(folder / name, content)
    return str(folder / name)
