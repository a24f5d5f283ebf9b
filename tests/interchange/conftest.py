"""Fixtures of commands."""

from tests.integration.conftest import assert_user_error, call_command

__all__ = ("assert_user_error", "call_command")
