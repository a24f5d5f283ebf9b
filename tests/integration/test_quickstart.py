"""quickstart.sh with commands that only leave their files: order, reuse, and what happens when one fails."""

import os
import pathlib
import subprocess

import pytest

from t2t_lite.bin import t2t_quickstart

SCRIPT = pathlib.Path(__file__).parents[2] / "bin/quickstart.sh"

# Each notes its call, fails where a file says so, and leaves what the script looks for. Times as t2t-avg-all sets them.
STUBS = {
    "t2t-datagen": 'mkdir -p "$DIR"',
    "t2t-trainer": 'mkdir -p "$DIR/train"',
    "t2t-avg-all": 'mkdir -p "$DIR/train/avg"; touch -d \'1 hour ago\' "$DIR/train/avg/model.ckpt-50.index"',
    "t2t-decoder": 'seq 2000 > "$DIR/translation.de"',
    "t2t-bleu": "echo 'BLEU_cased =  82.00'; echo 'sacreBLEU = 83.21 (nrefs:1|tok:13a)'",
    "t2t-exporter": 'mkdir -p "$DIR/export/1"; touch "$DIR/export/1/saved_model.pb"',
    "python": 'if [ $1 = - ]; then seq 2000 | tee "$3" > "$4"; else echo \'Das Haus ist alt.\'; fi',
}


@pytest.fixture
def quickstart(tmp_path):
    """Runs the script; returns (status, lines of stdout, stderr, names of the commands called)."""
    folder, stubs = tmp_path / "quick start", tmp_path / "bin"
    stubs.mkdir()
    for name, body in STUBS.items():
        (stubs / name).write_text(f"""#!/usr/bin/env bash
echo {name} >> {tmp_path}/calls
[ ! -e {tmp_path}/{name}-fails ] || exit 1
DIR="{folder}"
{body}
""")
        (stubs / name).chmod(0o755)

    def run(steps=50):
        (tmp_path / "calls").write_text("")
        env = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}"}
        words = ["bash", SCRIPT, folder, str(steps), "10"]
        done = subprocess.run(words, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL, timeout=1800)
        return done.returncode, done.stdout.splitlines(), done.stderr, (tmp_path / "calls").read_text().split()

    return run


def test_commands_in_order_and_the_score_last(quickstart):
    status, lines, err, calls = quickstart()
    assert (status, err) == (0, "")
    assert calls == [
        "t2t-datagen", "t2t-trainer", "t2t-avg-all", "python", "t2t-decoder", "t2t-bleu", "t2t-exporter", "python",
    ]  # fmt: skip
    assert lines[-1] == "quickstart: test BLEU 83.21 (nrefs:1|tok:13a)"
    echoed = [line.split()[1] for line in lines if line.startswith("$ ")]
    assert echoed == calls
    assert "Das Haus ist alt." in lines


@pytest.mark.parametrize(
    "steps, words",
    {
        50: "--n=5 --min_steps=10",
        1234: "--n=5 --min_steps=1194",
        40: "--n=4 --min_steps=0",
        1: "--n=1 --min_steps=0",
    }.items(),
)
def test_averages_the_last_five_checkpoints_or_all_of_a_short_training(quickstart, steps, words):
    (average,) = (line for line in quickstart(steps)[1] if line.startswith("$ t2t-avg-all"))
    assert words in average  # 10, 20, …; at last that of the end


def test_a_second_run_uses_what_is_there(quickstart):
    first = quickstart()[1]
    status, lines, _, calls = quickstart()
    assert status == 0
    assert calls == ["t2t-datagen", "t2t-trainer", "t2t-bleu", "python"]  # the first two see for themselves
    assert lines[-1] == first[-1]


@pytest.mark.parametrize("failing", ["t2t-datagen", "t2t-trainer", "t2t-avg-all", "t2t-decoder", "t2t-exporter"])
def test_a_failed_run_stops_there_and_continues_next_time(quickstart, tmp_path, failing):
    (tmp_path / f"{failing}-fails").touch()
    status, lines, err, calls = quickstart()
    assert status == 1
    assert calls[-1] == failing
    assert err == "quickstart: stopped. Run it again: it continues where it was.\n"
    assert not lines[-1].startswith("quickstart: test BLEU")
    (tmp_path / f"{failing}-fails").unlink()
    status, lines, err, calls = quickstart()
    assert (status, err) == (0, "")
    assert failing in calls
    assert lines[-1].startswith("quickstart: test BLEU 83.21")


def test_a_newer_model_is_translated_with_and_exported_anew(quickstart, tmp_path):
    quickstart()
    later = (tmp_path / "quick start/translation.de").stat().st_mtime + 60
    os.utime(tmp_path / "quick start/train/avg/model.ckpt-50.index", (later, later))
    assert {"t2t-decoder", "t2t-exporter"} <= set(quickstart()[3])


def test_it_needs_a_folder(capsys):
    """Without one the script would work in the root of the file system, and replace its /export."""
    assert t2t_quickstart.main(["--output_dir="]) == 2
    assert "--output_dir" in capsys.readouterr().err
