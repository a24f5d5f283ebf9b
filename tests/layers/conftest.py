"""A fixture of tests of patterns."""

import sys

import pytest

from t2t_lite import registry


@pytest.fixture
def in_parts(monkeypatch):
    """Has short sequences computed in parts, as long ones are."""
    patterns = registry.Registries.patterns
    for module in {patterns.get(name).__module__ for name in patterns.names()}:
        if hasattr(sys.modules[module], "is_short"):
            monkeypatch.setattr(sys.modules[module], "is_short", lambda *sizes: False)
