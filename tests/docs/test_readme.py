"""README's walkthrough, typed as it stands but for the number of steps, and typed again."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

PAGE = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_walkthrough_can_be_typed_twice(tmp_path):
    walkthrough = re.search(r"## Walkthrough.*?```bash\nsource .venv/bin/activate\n(.*?)```", PAGE, re.DOTALL)[1]
    assert "--train_steps=1500" in walkthrough
    script = "set -euo pipefail\n" + walkthrough.replace("--train_steps=1500", "--train_steps=2")
    script = script.replace("/tmp/t2t_datagen", f"{tmp_path}/downloads")
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    for turn in (1, 2):
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
        assert done.stdout.splitlines()[-1].endswith(f"/export/{turn}")
        assert len((tmp_path / "translation.de").read_text().splitlines()) == 2
    assert "resumed at step 2" in done.stderr
    assert "nothing to do" in done.stderr
