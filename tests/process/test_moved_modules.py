"""What was imported by an old name still is, and is the same module."""

import importlib
import pathlib

import pytest

from t2t_lite.process import moved_modules
from t2t_lite.process.lazy import extras, module_paths
from t2t_lite.process.moved_modules import new_name

_OLD = {  # names that docs and READMEs have had, and the extra that has them now
    "t2t_lite.config": "",
    "t2t_lite.search_options": "",
    "t2t_lite.console": "",
    "t2t_lite.layers.seeds": "",
    "t2t_lite.layers.scores.left_relative": "",
    "t2t_lite.layers.patterns.heads": "",
    "t2t_lite.decoding.search.stop_strings": "",
    "t2t_lite.hparams.universal_transformer": "universal",
    "t2t_lite.hparams.xlnet": "xlnet",
    "t2t_lite.problems.parsing": "parsing",
    "t2t_lite.problems.phrasebook.grammar": "phrasebook",
    "t2t_lite.serving.client": "query_client",
    "t2t_lite.baselines": "baselines",
    "t2t_lite.baselines.hparams_baselines": "baselines",
    "t2t_lite.bin.t2t_evalb": "parsing",
    "t2t_lite.autotune.journal": "autotune",
    "t2t_lite.interchange.hugging_face": "hugging_face",
    "t2t_lite.interchange.families.bert": "hugging_face",
    "t2t_lite.layers.scores.relative": "",
    "t2t_lite.training.optimization.lamb": "",
}


@pytest.mark.parametrize("old", [old for old, extra in _OLD.items() if not extra or extra in extras()])
def test_an_old_name_is_the_module(old):
    new = importlib.import_module(new_name(old))
    module = importlib.import_module(old)
    names = [name for name in vars(new) if not name.startswith("__")]
    assert all(getattr(module, name) is getattr(new, name) for name in names)
    assert module is new or hasattr(new, "__path__")


@pytest.mark.parametrize(
    "name", ["t2t_lite.nothing", "t2t_lite.models.nothing", "t2t_lite.serving.nothing", "other.config"]
)
def test_what_never_was_is_not_found(name):
    assert new_name(name) is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(name)


def test_every_module_that_became_a_part_of_another_is_found_there():
    lines = pathlib.Path(moved_modules.__file__).with_name("merged_modules.tsv").read_text("utf-8").splitlines()
    for old, new in (line.split("\t") for line in lines):
        parts = new.split(".")
        if parts[1] == "extras" and parts[2] not in extras():
            continue
        package, _, name = new_name(old).rpartition(".")
        assert name in module_paths(package), old
