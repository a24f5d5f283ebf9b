"""The commands' fixtures, for the tests of extras."""

from tests.integration.conftest import (  # noqa: F401
    assert_user_error,
    call_command,
    exports,
    run_command,
    standard_input,
    start,
    translators,
)
