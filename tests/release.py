"""What `make release` runs: the distributions of this version, checked, in dist/, and the words that tag it.

    python -m tests.release [flags of t2t-quickstart]

They are built from a clone of the last commit, so that nothing else gets into them. The wheel is installed with all
that it requires, into an environment that has nothing else, and runs the quickstart there, about ten minutes on two
cores; --train_steps=1 --local_eval_frequency=1 makes that a minute.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

import t2t_lite

ROOT = pathlib.Path(__file__).parents[1]
DIST = ROOT / "dist"
VERSION = t2t_lite.__version__


def faults(version, changelog, citation):
    """Returns what CHANGELOG.md and CITATION.cff, their texts, do not say of a version; list of str."""
    cited = yaml.safe_load(citation)
    found = re.search(rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    wrong = [] if found else [f"CHANGELOG.md: has no line '## {version} (YYYY-MM-DD)'"]
    if cited["version"] != version:
        wrong.append(f"CITATION.cff: is of version {cited['version']}, the package is {version}")
    if found and str(cited.get("date-released")) != found[1]:
        wrong.append(f"CITATION.cff: date-released is {cited.get('date-released')}, CHANGELOG.md says {found[1]}")
    return wrong


def run(*words, **options):
    """Runs a command; stops with its status where it fails."""
    print("$", *words, flush=True)
    if status := subprocess.run([str(word) for word in words], **options).returncode:
        sys.exit(f"make release: stopped, status {status}")


def build(folder):
    """Writes the source distribution, and the wheel made from it, of the last commit into dist/."""
    run("git", "clone", "--quiet", ROOT, folder / "clone")
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--quiet", "--outdir", DIST, folder / "clone")


def try_wheel(folder, flags):
    """Installs the wheel with what it requires into an environment of its own, and uses it from another folder."""
    (wheel,) = DIST.glob("*.whl")
    run(sys.executable, "-m", "venv", folder / "venv")
    scripts, work = folder / "venv/bin", folder / "work"
    work.mkdir()
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    options = {"cwd": work, "env": {**variables, "PATH": os.defpath}}
    run(scripts / "pip", "install", "--quiet", wheel, cwd=work, env=variables)
    run(scripts / "python", "-c", f"import t2t_lite; assert t2t_lite.__version__ == {VERSION!r}", **options)
    for words in (["--registry_help"], ["--registry_help", "--t2t_usr_dir=t2t_lite.baselines"]):
        run(scripts / "t2t-trainer", *words, stdout=subprocess.DEVNULL, **options)
    run(scripts / "t2t-quickstart", *flags, **options)


def main(flags):
    """Builds and checks; the last lines are the files with their SHA-256, and how to tag the version."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CHANGELOG.md", "CITATION.cff")]
    if wrong := faults(VERSION, *texts):
        sys.exit("\n".join(wrong))
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        sys.exit("git status: files are changed or new. Expected everything committed: the last commit is released.")
    run(sys.executable, "-m", "tests.stored.make", "--check", cwd=ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build(folder)
        tests = ["tests/integration/test_packaging.py", "tests/stored", "-m", "not long"]
        run(sys.executable, "-m", "pytest", "-q", *tests, cwd=ROOT, env={**os.environ, "T2T_DIST": str(DIST)})
        try_wheel(folder, flags)
    print("\nReleased files:")
    for path in sorted(DIST.iterdir()):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(ROOT))
    print(f"\nTag this commit:\ngit tag -a v{VERSION} -m 't2t_lite {VERSION}'\ngit push origin v{VERSION}")


if __name__ == "__main__":
    main(sys.argv[1:])
