"""README's walkthrough and the problem in docs/data.md, typed as they stand but for the number of steps."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
README, DATA = [(ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/data.md")]


@pytest.mark.slow
def test_the_walkthrough_can_be_typed(tmp_path):
    """That its commands go on with what they find: test_datagen.py, test_resumed_trainer.py, test_exporter.py."""
    walkthrough = re.search(r"## Walkthrough.*?```bash\nsource .venv/bin/activate\n(.*?)```", README, re.DOTALL)[1]
    assert "--train_steps=1500" in walkthrough
    script = "set -euo pipefail\n" + walkthrough.replace("--train_steps=1500", "--train_steps=2")
    script = script.replace("/tmp/t2t_datagen", f"{tmp_path}/downloads")
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "sacreBLEU = " in done.stdout
    assert done.stdout.splitlines()[-1].endswith("/export/1")
    assert len((tmp_path / "translation.de").read_text().splitlines()) == 2


@pytest.mark.slow
def test_the_problem_of_ones_own_works_as_typed(tmp_path, monkeypatch, capfd):
    from t2t_lite import registry
    from t2t_lite.bin import t2t_datagen, t2t_trainer

    code, commands = re.search(r"```python\n(import itertools\n.*?)```.*?```bash\n(.*?)```", DATA, re.DOTALL).groups()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_problems").mkdir()
    (tmp_path / "my_problems" / "__init__.py").write_text(code)
    datagen, trainer = (
        shlex.split(line)[1:] for line in commands.replace("\\\n", "").replace("=1000", "=2").splitlines()
    )
    try:
        assert t2t_datagen.main(datagen) == 0
        written = capfd.readouterr().err
        assert "warning" not in written
        assert "written to data" in written
        assert t2t_trainer.main([*trainer, "--generate_data"]) == 0
        assert capfd.readouterr().err.count("nothing to do") == 1  # each line comes once
    finally:
        registry._problems.remove("my_problem")
        del sys.modules["my_problems"]
