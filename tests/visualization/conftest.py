import pytest

from tests.decoding.runs import make_run


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory):
    """A run directory with a checkpoint; read only."""
    return make_run(tmp_path_factory.mktemp("run"))
