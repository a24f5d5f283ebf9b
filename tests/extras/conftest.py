"""What the tests of extras share with those of the core."""

from tests.bin.conftest import call, recorded  # noqa: F401
from tests.integration.conftest import (  # noqa: F401
    assert_user_error,
    call_command,
    exports,
    run_command,
    standard_input,
    start,
    translators,
)
from tests.visualization.conftest import run_dir  # noqa: F401
