import pytest

from tests.browser import chromium, downloads
from tests.extras.serving.echo_server import Echo
from tests.extras.serving.test_rest_server import Versions

__all__ = ("chromium", "downloads")


@pytest.fixture
def generator(monkeypatch):
    """The model's, in place of those of `Versions`."""
    made = Echo()
    export = type("Export", (), {"generator": made})
    monkeypatch.setattr(Versions, "find", lambda self, version=None: (2, export))
    return made
