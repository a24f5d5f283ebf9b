import pytest

from tests.export.c_program import build


@pytest.fixture(scope="session")
def c_program(tmp_path_factory):
    """Path of deploy/c's program, built against the installed TensorFlow."""
    return build(tmp_path_factory.mktemp("c"))
