"""What tests of t2t-query-server share."""

import pytest

from tests.extras.query_client.servers import asker


@pytest.fixture
def ask(call_command):
    """See `asker`."""
    return asker(call_command)
