"""What the tests of training share."""

import pytest

from t2t_lite import registry


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """A folder with records of `PROBLEM`."""
    from tests.training.runs import EXAMPLES, PROBLEM  # with TensorFlow, without which some tests of losses run

    folder = str(tmp_path_factory.mktemp("data"))
    problem = registry.problem(PROBLEM)
    problem.max_cases = EXAMPLES
    problem.generate_data(folder, folder)
    return folder
