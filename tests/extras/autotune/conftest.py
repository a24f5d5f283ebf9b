"""What the tests of searches share."""

from tests.training.conftest import data_dir  # noqa: F401
