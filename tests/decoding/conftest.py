import pytest

from tests.decoding.runs import make_language_model_run, make_run


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory):
    """A run directory with two checkpoints; read only."""
    return make_run(tmp_path_factory.mktemp("run"), steps=(100, 200))


@pytest.fixture(scope="session")
def lm_run_dir(tmp_path_factory):
    """The run directory of a language model; read only."""
    return make_language_model_run(tmp_path_factory.mktemp("lm_run"))
