"""README's walkthrough in a shell with the installed commands, as it stands but for the number of steps."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
