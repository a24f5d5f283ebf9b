import pytest

from tests.browser import chromium, downloads
from tests.extras.serving.doubles import Echo

__all__ = ("chromium", "downloads")


@pytest.fixture
def generator():
    """The language model of a server's export, see `rest_server`."""
    return Echo()
