"""Each module is tested by a file of its name, or by one that names it in a comment."""

import pytest

from tests import nearest


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("t2t_lite/data/batching.py", "tests/data/test_batching.py"),
        ("t2t_lite/registry.py", "tests/test_registry.py"),
        ("t2t_lite/layers/__init__.py", "tests/layers/test_layers.py"),
        ("bin/_app.py", "tests/bin/test_app.py"),
        ("extras/music/chorales.py", "tests/extras/music/test_chorales.py"),
    ],
)
def test_a_module_s_own_file_has_its_name(module, file):
    assert nearest.own_file(module) == file


def test_a_comment_names_further_modules(tmp_path, monkeypatch):
    tests = tmp_path / "tests" / "data"
    tests.mkdir(parents=True)
    (tests / "test_b.py").write_text('"""Tests."""\n\n# Nearest tests of: bin/a.py, t2t_lite/data/c.py\n')
    (tests / "test_c.py").write_text("# Nearest tests of: bin/a.py\n")
    monkeypatch.setattr(nearest, "ROOT", tmp_path)
    nearest.named_files.cache_clear()
    assert nearest.nearest("bin/a.py") == ["tests/data/test_b.py", "tests/data/test_c.py"]
    assert nearest.nearest("t2t_lite/data/c.py") == ["tests/data/test_c.py", "tests/data/test_b.py"]
    assert nearest.nearest("bin/b.py") == []
    nearest.named_files.cache_clear()


@pytest.mark.whole
def test_every_module_has_tests_near_it():
    modules = nearest.modules()
    assert len(modules) > 300 and not [module for module in modules if not nearest.nearest(module)]


@pytest.mark.whole
def test_comments_name_modules_that_exist():
    assert not [module for module in nearest.named_files() if not (nearest.ROOT / module).exists()]
