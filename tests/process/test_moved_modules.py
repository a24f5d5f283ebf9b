"""What was imported by an old name still is, and is the same module."""

import importlib
import importlib.util

import pytest

from t2t_lite.process.lazy import extra_of, extras
from t2t_lite.process.moved_modules import moved

_OLD = {  # names that docs and READMEs have had, and the extra that has them now
    "t2t_lite.config": "",
    "t2t_lite.random_numbers": "",
    "t2t_lite.layers.scores.left_relative": "",
    "t2t_lite.layers.patterns.heads": "",
    "t2t_lite.decoding.search.stop_strings": "",
    "t2t_lite.serving.client": "query_client",
    "t2t_lite.baselines": "baselines",
    "t2t_lite.media.image_encoder": "images",
}


@pytest.mark.parametrize("old", [old for old, extra in _OLD.items() if not extra or extra in extras()])
def test_an_old_name_is_the_module(old):
    new = importlib.import_module(moved()[old])
    module = importlib.import_module(old)
    names = [name for name in vars(new) if not name.startswith("__")]
    assert all(getattr(module, name) is getattr(new, name) for name in names)
    assert module is new or hasattr(new, "__path__")


@pytest.mark.parametrize("name", ["t2t_lite.nothing", "t2t_lite.models.nothing", "t2t_lite.serving.nothing"])
def test_what_never_was_is_not_found(name):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


def test_every_old_name_leads_to_a_module_of_today():
    for old, new in moved().items():
        extra, parent = extra_of(new), old.rpartition(".")[0]
        assert new not in moved()
        assert (extra and extra not in extras()) or importlib.util.find_spec(new), new
        assert parent in moved() or importlib.util.find_spec(parent), old
