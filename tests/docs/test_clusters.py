"""The launch files of docs/clusters.md, run with stand-ins for the cluster and the trainer."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "clusters.md"
TRAINER = """echo "$TF_CONFIG" >> "$FOLDER/seen"
echo "{\\"finished\\": $FINISHED}" > "$FOLDER/train/train.log"
exit $STATUS"""
SCONTROL = """[ "$1" = show ] && printf 'node1\\nnode2\\n'"""
SRUN = """shift; for SLURM_PROCID in 0 1; do SLURM_PROCID=$SLURM_PROCID "$@"; done"""


def file_of_page(name):
    return re.search(rf"<!-- file: {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]


@pytest.fixture
def bash(tmp_path):
    """Runs a script in bash; the trainer only notes its TF_CONFIG."""
    commands = tmp_path / "bin"
    commands.mkdir()
    (tmp_path / "train").mkdir()
    for name, body in (("t2t-trainer", TRAINER), ("scontrol", SCONTROL), ("srun", SRUN)):
        (commands / name).write_text(f"#!/bin/bash\n{body}\n")
        (commands / name).chmod(0o755)
    (commands / "t2t-make-tf-configs").symlink_to(pathlib.Path(sys.executable).with_name("t2t-make-tf-configs"))

    def run(script, finished="true", status=0, **environment):
        path = {"PATH": f"{commands}:{os.environ['PATH']}", "FOLDER": str(tmp_path)}
        environment = {**os.environ, **path, "FINISHED": finished, "STATUS": str(status), **environment}
        script = script.replace("/shared", str(tmp_path))
        (tmp_path / "seen").unlink(missing_ok=True)
        done = subprocess.run(["bash", "-c", script], env=environment, timeout=120, capture_output=True, text=True)
        return done.returncode, (tmp_path / "seen").read_text().splitlines()

    return run


def printed(workers):
    """What `t2t-make-tf-configs` prints for these hosts, without the quotes."""
    command = pathlib.Path(sys.executable).with_name("t2t-make-tf-configs")
    done = subprocess.run([command, f"--workers={workers}"], capture_output=True, text=True, check=True, timeout=300)
    return [line.strip("'") for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_slurm(bash):
    script = file_of_page("train.sbatch")
    expected = printed("node1:2222,node2:2222")
    job = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_ID": "7"}
    assert bash(script, **job) == (0, expected)
    assert bash(script, finished="false", **job) == (1, expected * 5), "started again, five times at most"


@pytest.mark.slow
def test_kubernetes(bash):
    manifest = file_of_page("train.yaml")
    script = re.search(r"            - \|\n(.*?)          resources:", manifest, re.DOTALL)[1]
    script = textwrap.dedent(script)
    names = "t2t-0.t2t:2222,t2t-1.t2t:2222"  # a Pod of an indexed Job: <job>-<index>.<subdomain>
    for index, expected in enumerate(printed(names)):
        environment = {"MACHINES": "2", "JOB_COMPLETION_INDEX": str(index)}
        assert bash(script, **environment) == (0, [expected])
        assert bash(script, finished="false", **environment) == (1, [expected]), "a signal: the Pod is to come again"
        assert bash(script, status=1, **environment)[0] == 1


def test_the_manifest_is_yaml():
    yaml = pytest.importorskip("yaml")
    service, job = yaml.safe_load_all(file_of_page("train.yaml"))
    assert (service["kind"], job["kind"]) == ("Service", "Job")
    spec = job["spec"]["template"]["spec"]
    assert spec["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert job["spec"]["completions"] == int(spec["containers"][0]["env"][0]["value"])
