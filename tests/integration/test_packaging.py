"""The wheel of a clean clone: what it holds, and its commands in an environment of their own."""

import configparser
import os
import pathlib
import subprocess
import sys
import sysconfig
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.slow  # cloning, building and installing take half a minute


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone") / "t2t_lite"
    run("git", "clone", "--quiet", ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(clone, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, clone)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def commands(wheel, tmp_path_factory):
    """The `bin` folder of a fresh environment that holds the wheel and, for speed, borrows its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel)
    site_packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    # A path alone: the .pth files over there, this checkout's editable install among them, are not followed.
    pathlib.Path(site_packages, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = run(python, "-c", "import t2t_lite; print(t2t_lite.__file__)", cwd=folder).stdout
    assert where.startswith(site_packages)
    return folder / "bin"


def test_wheel_holds_every_module_and_table_and_nothing_else(clone, wheel):
    expected = set()
    for folder, package in {
        "t2t_lite": "t2t_lite",
        "bin": "t2t_lite/bin",
        "hparams": "t2t_lite/hparams",
        "problems": "t2t_lite/problems",
    }.items():
        for path in (path for kind in ("*.py", "*.tsv", "static/*") for path in (clone / folder).rglob(kind)):
            expected.add(f"{package}/{path.relative_to(clone / folder)}")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_every_command_module_has_its_console_script(clone, wheel):
    archive = zipfile.ZipFile(wheel)
    (path,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    parser = configparser.ConfigParser()
    parser.read_string(archive.read(path).decode())
    modules = [file.stem for file in (clone / "bin").glob("t2t_*.py")]
    assert dict(parser["console_scripts"]) == {
        module.replace("_", "-"): f"t2t_lite.bin.{module}:main" for module in modules
    }


def test_names_are_listed_from_any_folder(commands, tmp_path):
    lines = run(commands / "t2t-trainer", "--registry_help", cwd=tmp_path).stdout.split()
    for name in ("transformer", "transformer_base_v1", "translate_ende_phrasebook", "translate_own"):
        assert name in lines


def test_a_users_folder_is_found_from_the_folder_one_works_in(commands, tmp_path):
    (tmp_path / "my_sets").mkdir()
    (tmp_path / "my_sets/__init__.py").write_text(
        "from t2t_lite import registry\n"
        "from t2t_lite.hparams.transformer import transformer_base\n"
        "@registry.register_hparams\n"
        "def my_own_set():\n"
        "    return transformer_base()\n"
    )
    done = run(commands / "t2t-trainer", "--registry_help", "--t2t_usr_dir=my_sets", cwd=tmp_path)
    assert "my_own_set" in done.stdout.split()


def test_commands_answer_from_any_folder_and_without_tensorflow(commands, tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('TensorFlow was imported')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    found = {path.name: run(path, "--help", cwd=tmp_path, env=environment) for path in commands.glob("t2t-*")}
    assert "t2t-trainer" in found
    for name, done in found.items():
        assert done.stdout.startswith(f"{name}: "), done
        assert "TensorFlow was imported" not in done.stdout + done.stderr
