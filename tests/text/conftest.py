"""The vocabularies that several files try."""

import pytest

from tests.text.kinds import KINDS


@pytest.fixture(scope="module", params=KINDS)
def encoder(request, tmp_path_factory):
    """An encoder of each kind."""
    return KINDS[request.param](tmp_path_factory.mktemp(request.param))
