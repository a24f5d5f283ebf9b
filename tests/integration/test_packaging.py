"""The wheel and the source distribution of a clean clone: what they hold, and commands in a fresh environment."""

import configparser
import os
import pathlib
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest
from packaging.metadata import Metadata
from readme_renderer import markdown

import t2t_lite

ROOT = pathlib.Path(__file__).parents[2]

# Cloning, building and installing take half a minute, and need a clone.
pytestmark = [pytest.mark.slow, pytest.mark.whole]


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options, timeout=1800)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone") / "t2t_lite"
    run("git", "clone", "--quiet", ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def distributions(clone, tmp_path_factory):
    """The folder of the source distribution and of the wheel that is made from it, not from the clone; $T2T_DIST."""
    if released := os.environ.get("T2T_DIST"):
        return pathlib.Path(released)
    folder = tmp_path_factory.mktemp("distributions")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, clone)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions):
    (path,) = distributions.glob("*.whl")
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
        "extras": "t2t_lite/extras",
        "hparams": "t2t_lite/hparams",
        "problems": "t2t_lite/problems",
    }.items():
        for path in (
            path
            for kind in ("*.py", "*.pyi", "*.sh", "*.tsv", "py.typed", "static/*")
            for path in (clone / folder).rglob(kind)
        ):
            expected.add(f"{package}/{path.relative_to(clone / folder)}")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_source_distribution_holds_what_the_wheel_is_made_of_and_no_tests(clone, distributions):
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        top = path.name.removesuffix(".tar.gz")
        names = {pathlib.PurePath(name).relative_to(top) for name in archive.getnames()}
    folders = {name.parts[0] for name in names if len(name.parts) > 1}
    assert folders == {"t2t_lite", "bin", "extras", "hparams", "problems", "t2t_lite.egg-info"}
    for name in ("README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "setup.cfg", "setup.py", "pyproject.toml"):
        assert pathlib.PurePath(name) in names


def test_the_source_distribution_gives_the_clone_s_wheel(clone, wheel, tmp_path):
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path, clone)
    (of_clone,) = tmp_path.glob("*.whl")
    of_builder = ".dist-info/METADATA", ".dist-info/RECORD", ".dist-info/WHEEL"  # as its version writes them
    contents = [
        {item.filename: item.CRC for item in zipfile.ZipFile(path).infolist() if not item.filename.endswith(of_builder)}
        for path in (wheel, of_clone)
    ]
    assert of_clone.name == wheel.name and contents[0] == contents[1]


def test_metadata_are_valid_and_the_readme_renders(wheel):
    archive = zipfile.ZipFile(wheel)
    (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Metadata.from_email(archive.read(path), validate=True)
    assert (metadata.name, str(metadata.version)) == ("t2t_lite", t2t_lite.__version__)
    assert metadata.license_files == ["LICENSE"]
    assert set(metadata.project_urls) == {"Paper", "Paper on tensor2tensor"}
    assert metadata.description_content_type == "text/markdown"
    page = markdown.render(metadata.description)  # as package indexes show it
    readme = metadata.description
    assert page.count("<h2") == readme.count("\n## ") and page.count("<pre") * 2 == readme.count("\n```")
    assert page.count("<table") == readme.count("\n|--")


def test_every_command_module_has_its_console_script(clone, wheel):
    archive = zipfile.ZipFile(wheel)
    (path,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    parser = configparser.ConfigParser()
    parser.read_string(archive.read(path).decode())
    modules = [*clone.glob("bin/t2t_*.py"), *clone.glob("extras/*/t2t_*.py")]
    assert dict(parser["console_scripts"]) == {
        path.stem.replace("_", "-"): ".".join(("t2t_lite", *path.relative_to(clone).with_suffix("").parts)) + ":main"
        for path in modules
    }


def test_names_are_listed_from_any_folder_and_a_users_is_found_from_the_one_one_works_in(commands, tmp_path):
    (tmp_path / "my_sets").mkdir()
    (tmp_path / "my_sets/__init__.py").write_text(
        "from t2t_lite import registry\n"
        "from t2t_lite.hparams.transformer import transformer_base\n"
        "@registry.register_hparams\n"
        "def my_own_set():\n"
        "    return transformer_base()\n"
    )
    done = run(commands / "t2t-trainer", "--registry_help", "--t2t_usr_dir=my_sets", cwd=tmp_path)
    lines = done.stdout.split()
    for name in ("my_own_set", "transformer", "transformer_base_v1", "translate_ende_wmt32k", "translate_own"):
        assert name in lines


def test_commands_answer_from_any_folder_and_without_tensorflow(commands, tmp_path):
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('TensorFlow was imported')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    found = {path.name: run(path, "--help", cwd=tmp_path, env=environment) for path in commands.glob("t2t-*")}
    assert "t2t-trainer" in found
    for name, done in found.items():
        assert done.stdout.startswith(f"{name}: "), done
        assert "TensorFlow was imported" not in done.stdout + done.stderr


@pytest.mark.long
def test_the_quickstart_runs_from_the_wheel(commands, tmp_path):
    words = ["--output_dir=small one", "--train_steps=1", "--local_eval_frequency=1"]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = os.defpath  # without this environment's commands
    done = run(commands / "t2t-quickstart", *words, cwd=tmp_path, env=environment)
    lines = done.stdout.splitlines()
    assert lines[-1].startswith("quickstart: test BLEU ")
    assert f"(the commands are in {commands})" in lines
    assert [path.name for path in tmp_path.iterdir()] == ["small one"]
    assert (tmp_path / "small one/export/1/saved_model.pb").is_file()
