"""Users' folders, whose modules register problems, models and hyperparameter sets."""

import concurrent.futures
import signal
import sys
import time

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError

GOOD = """
from t2t_lite import models, registry
from t2t_lite.settings.config import HParams

@registry.register_hparams
def {name}():
    return HParams(hidden_size=8)
"""


@pytest.fixture
def usr_dir(tmp_path):
    """Makes a user's folder from {file name: text}; forgets its modules and sets afterwards."""
    folder = tmp_path / "my_t2t_folder"
    folder.mkdir()
    sets = registry.list_hparams()

    def make(files):
        for name, text in files.items():
            (folder / name).write_text(text)
        return folder

    yield make
    for name in set(registry.list_hparams()) - set(sets):
        registry.Registries.hparams.remove(name)
    for module in [name for name in sys.modules if name.split(".")[0] == folder.name]:
        del sys.modules[module]


@pytest.mark.parametrize("slash", ["", "/"])
def test_usr_dir_registers_what_its_modules_register(usr_dir, slash):
    folder = usr_dir({"__init__.py": "from . import sets\n", "sets.py": GOOD.format(name="my_own_set")})
    path = list(sys.path)
    registry.import_usr_dir(f"{folder}{slash}")
    assert registry.hparams("my_own_set").hidden_size == 8
    assert sys.path == path


def test_usr_dir_is_the_name_of_an_installed_package(usr_dir, monkeypatch):
    folder = usr_dir({"__init__.py": ""})
    (folder / "sets").mkdir()
    (folder / "sets" / "__init__.py").write_text(GOOD.format(name="my_packaged_set"))
    monkeypatch.syspath_prepend(folder.parent)
    registry.import_usr_dir("my_t2t_folder.sets")
    assert registry.hparams("my_packaged_set").hidden_size == 8
    registry.import_usr_dir(str(folder / "sets"))  # which would register it again
    for name in ("my_t2t_folder.nothing", "no_such_package.sets"):
        with pytest.raises(UserError, match=f"--t2t_usr_dir={name}: no .*, or the name of an installed package"):
            registry.import_usr_dir(name)


def test_usr_dir_with_a_dot_in_its_name_is_refused(tmp_path):
    """Python would import the module before the dot, which may be another version of the same folder."""
    for name in ("mine", "mine.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ValueError('imported')\n")
    with pytest.raises(UserError, match=r"--t2t_usr_dir=.*/mine\.old: Python cannot import .*without a dot.*mine_old"):
        registry.import_usr_dir(str(tmp_path / "mine.old"))


def test_usr_dir_of_home_and_none(usr_dir, monkeypatch):
    folder = usr_dir({"__init__.py": GOOD.format(name="my_home_set")})
    monkeypatch.setenv("HOME", str(folder.parent))
    registry.import_usr_dir(f"~/{folder.name}")
    assert "my_home_set" in registry.list_hparams()
    registry.import_usr_dir("")
    registry.import_usr_dir(None)


def test_a_thread_waits_for_a_usr_dir_that_another_one_imports(usr_dir):
    folder = usr_dir({"__init__.py": f"import time\ntime.sleep(0.3)\n{GOOD.format(name='my_slow_set')}"})

    def is_there(seconds):
        time.sleep(seconds)
        return registry.import_usr_dir(str(folder)), "my_slow_set" in registry.Registries.hparams

    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert list(pool.map(is_there, [0, 0.1])) == [(folder.name, True)] * 2


def test_usr_dir_may_be_called_baselines(usr_dir, monkeypatch):
    folder = usr_dir({"__init__.py": ""})
    monkeypatch.chdir(folder)
    assert registry.import_usr_dir("baselines") is None  # the name of an extra
    (folder / "baselines").mkdir()
    (folder / "baselines" / "__init__.py").write_text(GOOD.format(name="my_baseline_set"))
    assert registry.import_usr_dir("baselines") == "baselines" and "my_baseline_set" in registry.list_hparams()
    del sys.modules["baselines"]


@pytest.mark.parametrize(
    ("text", "where", "cause"),
    [
        ("\n\nvalue = 1 / 0\n", ", line 3", "ZeroDivisionError: division by zero"),
        ("import not_installed_here\n", ", line 1", "ModuleNotFoundError: No module named 'not_installed_here'"),
        ("x = 1\ndef broken(:\n", ", line 2", "SyntaxError: invalid syntax"),
        (GOOD.format(name="transformer_base"), ", line 5: hparams: 'transformer_base' is already registered", ""),
        ("import sys\nsys.exit(0)\n", ", line 2", "exits with status 0"),
        ("raise SystemExit\n", ", line 1", "exits with status None"),
        ("raise KeyboardInterrupt\n", ", line 1", "KeyboardInterrupt: no reason given"),
        ("raise GeneratorExit('x')\n", ", line 1", "GeneratorExit: x"),
        ("x = '\0'\n", "", "Error: source code"),  # of which kind, depends on Python
        ("from tensor2tensor.utils import registry\n", ", line 1", "docs/coming_from_tensor2tensor.md"),
        (
            "import tensor2tensor\n",
            ", line 1",
            "No module named 'tensor2tensor'. t2t_lite has these modules under other names",
        ),
        ("from . import b\n", ", line 1", "ImportError: cannot import name 'b'"),
        ("assert False\n", ", line 1", "AssertionError: no reason given"),
    ],
)
@pytest.mark.parametrize("name", ["__init__.py", "sets.py"])
def test_broken_usr_dir_names_file_line_and_cause(usr_dir, name, text, where, cause):
    folder = usr_dir({"__init__.py": "from . import sets\n", name: text})
    registry.list_hparams()  # the built-in ones are there first
    with pytest.raises(UserError) as caught:
        registry.import_usr_dir(str(folder))
    message = str(caught.value)
    assert f"--t2t_usr_dir={folder}: {folder}/{name if where else ''}{where}" in message
    assert cause in message
    assert "\n" not in message


def test_the_command_that_ports_a_folder_names_the_folder_of_the_import(usr_dir):
    folder = usr_dir({"__init__.py": "from . import inner\n"})
    (folder / "inner").mkdir()
    (folder / "inner" / "__init__.py").write_text("import tensor2tensor.utils.registry\n")
    with pytest.raises(UserError, match=rf"inner/__init__\.py, line 1: .* {folder}/inner/\*\.py$"):
        registry.import_usr_dir(str(folder))


def test_the_users_own_interrupt_while_a_folder_is_imported_is_one(usr_dir):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it
    text = "import signal\nsignal.raise_signal(signal.SIGINT)\nfor _ in range(10):\n    pass\n"
    with pytest.raises(KeyboardInterrupt):
        registry.import_usr_dir(str(usr_dir({"__init__.py": text})))


def test_folders_that_no_usr_dir_can_be(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").write_text(GOOD.format(name="my_hidden_set"))
    for path, words in (
        *((path, "invalid path") for path in ("n" * 5000, "a\0b")),
        (tmp_path / "loop", r"invalid path|no .*__init__\.py"),  # from Python 3.13 on, a loop is only missing
        *((path, r"no .*__init__\.py") for path in (tmp_path, tmp_path / "nowhere")),
        (tmp_path / "json", r"'json': .* Rename the folder"),
    ):
        with pytest.raises(UserError, match=words):
            registry.import_usr_dir(str(path))
