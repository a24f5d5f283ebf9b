"""The records of a user's text, for models that carry a state."""

import os

import pytest

from t2t_lite import registry


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """The folder of the text's records."""
    from tests.extras.memory.carried import PROBLEM  # not at the top: the score's tests run without TensorFlow

    registry.import_usr_dir(os.path.join(os.path.dirname(__file__), "user_memory"))
    folder = str(tmp_path_factory.mktemp("text"))
    registry.problem(PROBLEM).generate_data(folder, folder)
    return folder
