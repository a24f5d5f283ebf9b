"""What t2t-query-server reads is not overwritten."""
# ruff: noqa: F811

import pytest

from tests.integration.test_outputs import contents, folder, made  # noqa: F401


@pytest.mark.parametrize(
    "args",
    {
        "query": [
            "t2t-query-server",
            "--server=localhost:1",
            "--servable_name=x",
            "--inputs_file=in",
            "--outputs_file=link",
        ],
        "query: a key": [
            "t2t-query-server",
            "--server=localhost:1",
            "--servable_name=x",
            "--inputs_file=in",
            "--tls_ca_file=ref",
            "--outputs_file=ref",
        ],
    }.values(),
)
def test_no_input_is_overwritten(folder, call_command, assert_user_error, args):
    before = contents(folder)
    assert_user_error(call_command(*args), "--")
    assert contents(folder) == before
