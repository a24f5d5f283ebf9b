"""What tests of imports and exports share: a folder becomes a run and a run becomes a folder, or neither."""

import numpy as np
import pytest

import t2t_lite
from t2t_lite.errors import UserError
from t2t_lite.extras.hugging_face.hugging_face import export_hugging_face, import_hugging_face
from tests.extras.hugging_face.folders import tensors_of


def loaded(folder, run, **options):
    """Imports a folder into a run; returns what answers with it."""
    import_hugging_face(str(folder), str(run), **options)
    return t2t_lite.load(str(run))


def in_and_out_twice(folder, tmp_path, **options):
    """Imports a folder and exports its run to "0", and that to "1"; returns what answered with each run."""
    answerers = []
    for number, source in enumerate((folder, tmp_path / "0")):
        answerers.append(loaded(source, tmp_path / f"run{number}", **options))
        exported(answerers[-1], tmp_path / str(number))
    return answerers


def exported(answerer, folder):
    """Exports a model into a folder; returns its path."""
    return export_hugging_face(answerer, str(folder))


def refuses_export(answerer, tmp_path, *words):
    """An export says all words in one error, and writes nothing."""
    with pytest.raises(UserError) as caught:
        exported(answerer, tmp_path / "refused")
    for each in words:
        assert each in str(caught.value)
    assert not (tmp_path / "refused").exists()


def assert_same_tensors(folder, tensors):
    """A folder has just these tensors, bit by bit."""
    found = tensors_of(folder)
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
