"""t2t-quickstart with commands that only leave their files: order, reuse, and what happens when one fails."""

# Nearest tests of: extras/quickstart/own_files.py, extras/quickstart/phrasebook_job.py
# Nearest tests of: extras/quickstart/t2t_quickstart.py, extras/quickstart/commands.py

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from t2t_lite.extras.quickstart import commands, own_files, t2t_quickstart
from t2t_lite.extras.quickstart import phrasebook_job as phrasebook
from tests.data import corpus

# Each notes its call, fails where a file says so, and leaves what the quickstart looks for; checkpoints are older.
STUBS = {
    "t2t-datagen": 'mkdir -p "$DIR/data"',
    "t2t-trainer": """
mkdir -p "$DIR/train/best"; touch -d '1 hour ago' "$DIR/train/best/checkpoint"
if [[ "$*" == */probe* ]]; then
    mkdir -p "$DIR/probe"
    speed='"seconds_per_step": 0.5, "sentences_per_step": 40.0'
    echo '{"time": 1.0, "event": "progress", "step": 30, '"$speed"'}' > "$DIR/probe/train.log"
fi""",
    "t2t-avg-all": 'mkdir -p "$DIR/train/avg"; touch -d \'1 hour ago\' "$DIR/train/avg/model.ckpt-50.index"',
    "t2t-decoder": 'seq 2000 > "$DIR/translation.de"',
    "t2t-bleu": "echo 'BLEU_cased =  82.00'; echo 'sacreBLEU = 83.21 (nrefs:1|tok:13a)'",
    "t2t-exporter": 'mkdir -p "$DIR/export/1"; touch "$DIR/export/1/saved_model.pb"',
}


@pytest.fixture
def quickstart(tmp_path, monkeypatch, capfd):
    """Runs the command; returns (status, lines of stdout, stderr, names of the commands called)."""
    folder, stubs = tmp_path / "quick start", tmp_path / "bin"
    stubs.mkdir()
    for name, body in STUBS.items():
        (stubs / name).write_text(f"""#!/usr/bin/env bash
echo {name} >> {tmp_path}/calls
if [ -e {tmp_path}/{name}-fails ]; then exit $(cat {tmp_path}/{name}-fails); fi
DIR="{folder}"
{body}
""")
        (stubs / name).chmod(0o755)
    monkeypatch.setattr(commands, "_FOLDERS", (str(stubs), os.environ["PATH"]))

    def write_texts(problem, data_dir, split, paths):
        for path in paths:
            with open(path, "w") as file:
                file.writelines(f"{i}\n" for i in range(2000))

    monkeypatch.setattr(commands, "write_texts", write_texts)
    monkeypatch.setattr(phrasebook, "_ASK", "print('Das Haus ist alt.')\n")

    def run(*flags, steps=50):
        (tmp_path / "calls").write_text("")
        flags = flags or (f"--train_steps={steps}", "--local_eval_frequency=10")
        status = t2t_quickstart.main([f"--output_dir={folder}", *map(str, flags)])
        out, err = capfd.readouterr()
        return status, out.splitlines(), err, (tmp_path / "calls").read_text().split()

    return run


def test_commands_in_order_and_the_score_last(quickstart, tmp_path):
    status, lines, err, calls = quickstart()
    assert (status, err) == (0, "")
    assert calls == ["t2t-datagen", "t2t-trainer", "t2t-avg-all", "t2t-decoder", "t2t-bleu", "t2t-exporter"]
    assert lines[-1] == "quickstart: test BLEU 83.21 (nrefs:1|tok:13a)"
    typed = [shlex.split(line)[1:] for line in lines if line.startswith("$ ")]
    assert [words[0] for words in typed] == [*calls, "python"]
    at = str(tmp_path / "quick start")
    problem, data, train = "--problem=translate_ende_phrasebook", f"--data_dir={at}/data", f"{at}/train"
    assert [words[1:] for words in typed] == [
        [problem, data],
        [problem, data, f"--output_dir={train}", "--model=transformer", "--hparams_set=transformer_quickstart",
         "--train_steps=50", "--local_eval_frequency=10"],
        [f"--model_dir={train}", f"--output_dir={train}/avg", "--n=5", "--min_steps=10"],
        [f"--output_dir={train}/avg", f"--decode_from_file={at}/test.en", f"--decode_to_file={at}/translation.de"],
        [f"--translation={at}/translation.de", f"--reference={at}/test.de"],
        [f"--output_dir={train}/avg", f"--export_dir={at}/export"], [f"{at}/ask.py"],
    ]  # fmt: skip
    assert "Das Haus ist alt." in lines
    # Three translations: the first, the middle and the last.
    at = lines.index("== Three translations")
    expected = [[["source", str(at)], ["translation", str(at + 1)], ["reference", str(at)]] for at in (0, 1000, 1999)]
    assert [[line.split() for line in lines[at + first :][:3]] for first in (1, 5, 9)] == expected
    end = lines.index(f"(the commands are in {os.path.dirname(sys.executable)})")
    advised = lines[lines.index("== What next") + 1 : end]
    assert advised and all("  t2t-" in line for line in advised)  # TensorBoard, for example, may not be installed


@pytest.mark.parametrize(
    "steps, words",
    {
        50: "--n=5 --min_steps=10",
        1234: "--n=5 --min_steps=1194",
        40: "--n=4 --min_steps=0",
        1: "--n=1 --min_steps=0",
    }.items(),
)
def test_averages_the_last_five_checkpoints_or_all_of_a_short_training(quickstart, tmp_path, steps, words):
    (tmp_path / "t2t-decoder-fails").write_text("1")
    (average,) = (line for line in quickstart(steps=steps)[1] if line.startswith("$ t2t-avg-all"))
    assert words in average  # 10, 20, …; at last that of the end


def test_a_second_run_uses_what_is_there(quickstart):
    first = quickstart()[1]
    status, lines, _, calls = quickstart()
    assert status == 0
    assert calls == ["t2t-datagen", "t2t-trainer", "t2t-bleu"]  # the first two see for themselves
    assert lines[-1] == first[-1]


@pytest.mark.parametrize("status, stays", [(1, 1), (2, 2), (130, 1)])
@pytest.mark.parametrize("failing", ["t2t-datagen", "t2t-trainer", "t2t-avg-all", "t2t-decoder", "t2t-exporter"])
def test_a_failed_run_stops_there_and_continues_next_time(quickstart, tmp_path, failing, status, stays):
    (tmp_path / f"{failing}-fails").write_text(str(status))
    found, lines, err, calls = quickstart()
    assert found == stays  # 2: the user's mistake, of which the command has told
    assert calls[-1] == failing
    assert err.startswith(f"t2t-quickstart: error: stopped at {failing}") and err.count("\n") == 1
    assert "again to continue" in err
    assert not lines[-1].startswith("quickstart: test BLEU")
    (tmp_path / f"{failing}-fails").unlink()
    found, lines, err, calls = quickstart()
    assert (found, err) == (0, "")
    assert failing in calls
    assert lines[-1].startswith("quickstart: test BLEU 83.21")


@pytest.mark.parametrize("seconds", [60, -3600])  # -3600: the clock was set back before the model was trained further
def test_another_model_is_translated_with_and_exported_anew(quickstart, tmp_path, seconds):
    quickstart()
    made = (tmp_path / "quick start/translation.de").stat().st_mtime + seconds
    average = tmp_path / "quick start/train/avg/model.ckpt-50.index"
    os.utime(average, (made, made))
    assert not {"t2t-decoder", "t2t-exporter"} & set(quickstart()[3]), "the same model, whatever its time"
    average.write_bytes(b"other weights")
    os.utime(average, (made, made))
    assert {"t2t-decoder", "t2t-exporter"} <= set(quickstart()[3])


def test_the_export_of_another_command_is_not_replaced(capsys, tmp_path):
    (tmp_path / "export").mkdir()
    assert t2t_quickstart.main([f"--output_dir={tmp_path}"]) == 2
    assert f"--output_dir={tmp_path} contains export/" in capsys.readouterr().err


# Of a user's own pairs.


@pytest.fixture
def own(tmp_path, monkeypatch, quickstart):
    """The flags for 400 pairs, which the manifest counts."""
    monkeypatch.setattr(own_files, "find_manifest", lambda *_: {"splits": {"train": {"examples": 360}}})
    monkeypatch.setattr(own_files, "_has_gpu", lambda: False)
    pairs = corpus.write_corpus(tmp_path, "a", corpus.sentence_pairs(400, 0))
    (tmp_path / "quick start/data").mkdir(parents=True)
    config = {"languages": ["en", "de"], "format": 2, "problem": "translate_own", "vocab_size": 300, "files": {}}
    (tmp_path / "quick start/data/problem.json").write_text(json.dumps(config))
    return f"--train_files={pairs}", "--minutes=10"


@pytest.mark.slow
def test_own_pairs_become_a_model_that_is_served(own, quickstart, tmp_path):
    status, lines, _, calls = quickstart(*own)
    assert status == 0
    assert calls == ["t2t-datagen", "t2t-trainer", "t2t-trainer", "t2t-decoder", "t2t-bleu", "t2t-exporter"]
    assert lines[-1] == "quickstart: dev BLEU 83.21 (nrefs:1|tok:13a)"
    typed = [line for line in lines if line.startswith("$ ")]
    assert [line.split()[1] for line in typed] == calls
    # Half a second per step would give 1,000 steps in ten minutes; but 40 passes over 360 pairs are 360 steps of 40.
    at = str(tmp_path / "quick start")
    flags = ["--problem=translate_own", f"--data_dir={at}/data", "--hparams_set=transformer_cpu"]
    assert [sorted(shlex.split(line)[2:]) for line in typed] == [sorted(words) for words in (
        [*flags[:2], own[0]],
        [*flags, f"--output_dir={at}/probe", "--train_steps=30", "--schedule=train", "--log_step_count_steps=10",
         "--hparams=layer_prepostprocess_dropout=0.3,learning_rate_warmup_steps=6"],
        [*flags, f"--output_dir={at}/train", "--train_steps=360", "--local_eval_frequency=45",
         "--hparams=layer_prepostprocess_dropout=0.3,learning_rate_warmup_steps=72"],
        [f"--output_dir={at}/train/best", f"--decode_from_file={at}/dev.en", f"--decode_to_file={at}/translation.de"],
        [f"--translation={at}/translation.de", f"--reference={at}/dev.de"],
        [f"--output_dir={at}/train/best", f"--export_dir={at}/export"],
    )]  # fmt: skip
    assert not (tmp_path / "quick start/probe").exists()
    (told,) = [line for line in lines if "s per step" in line]
    assert told == "0.50 s per step of 40 pairs: 360 steps take about 3 minutes and make 40 passes over the 360 pairs"
    assert any(line.startswith("serve it") and "t2t-server --export_dir=" in line for line in lines)
    # The plan stays, and what is there is used again.
    status, lines, _, calls = quickstart(*own)
    assert (status, calls) == (0, ["t2t-datagen", "t2t-trainer", "t2t-bleu"])
    assert next(line for line in lines if line.startswith("$ t2t-trainer")) == typed[2]


@pytest.mark.parametrize(
    ("pairs", "steps", "minutes", "told"),
    [
        # 40 of 36,000 pairs a step: 100 steps are a ninth of a pass; ten passes are 8,900 steps more, 74.2 minutes.
        (36_000, 100, 100, "about 1 minutes and make 0.1 passes over the 36,000 pairs"),
        # 40 of 3,600 pairs a step: 880 steps are 9.8 passes, 10 seconds less than ten.
        (3_600, 880, 20, "9.8 passes"),
    ],
)
def test_few_passes_are_warned_of_with_the_minutes_of_ten(own, quickstart, monkeypatch, pairs, steps, minutes, told):
    """Steps are nine tenths of the time."""
    monkeypatch.setattr(own_files, "find_manifest", lambda *_: {"splits": {"train": {"examples": pairs}}})
    monkeypatch.setattr(commands, "steps_for", lambda *arguments: steps)
    status, lines, err, _ = quickstart(*own)
    assert status == 0 and f"--minutes={minutes} " in err and "passes are few" in err
    assert any(told in line for line in lines)


def test_a_table_needs_its_languages(own, quickstart, tmp_path):
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"{inputs}\t{targets}\n" for inputs, targets in corpus.sentence_pairs(400, 0)))
    status, _, err, calls = quickstart(f"--train_files={table}")
    assert (status, calls) == (2, []) and "Add --languages=en,de" in err
    status, lines, _, _ = quickstart(f"--train_files={table}", "--languages=en,de")
    assert status == 0 and any(line.endswith(f"--train_files={table} --languages=en,de") for line in lines)


def test_a_table_with_a_header(own, quickstart, tmp_path):
    """The message that advises flags is followed as it stands."""
    table = tmp_path / "a, b.csv"
    lines = [f"{inputs},{targets}\n" for inputs, targets in corpus.sentence_pairs(400, 0)]
    table.write_text("".join(["English text,German text\n", *lines]))
    flags = [f'--train_files="{table}"', "--languages=en,de"]
    status, _, err, calls = quickstart(*flags)
    assert (status, calls) == (2, []) and "set --header, or the names of the columns: --columns=English text,Ger" in err
    status, printed, _, _ = quickstart(*flags, "--header", "--columns=English text,German text")
    (typed,) = [shlex.split(line) for line in printed if line.startswith("$ t2t-datagen")]
    assert status == 0 and {*flags, "--header=True", "--columns=English text,German text"} <= {*typed}
    status, _, err, _ = quickstart(*flags)
    assert status == 2 and "begun with --columns=English text,German text, but you requested no --columns" in err


def test_another_request_is_refused(own, quickstart):
    quickstart(*own)
    status, _, err, calls = quickstart(own[0], "--minutes=20")
    assert (status, calls) == (2, [])
    assert "quickstart.json: begun with --minutes=10, but you requested --minutes=20" in err


@pytest.mark.parametrize("name", ["missing.de", "short.de"])
def test_files_that_are_no_pairs_are_refused_before_any_command(own, quickstart, tmp_path, name):
    (tmp_path / "short.de").write_text("eine Zeile\n")
    status, _, err, calls = quickstart(own[0].replace("a.de", name))
    assert (status, calls) == (2, []) and name in err
    assert not (tmp_path / "quick start/quickstart.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_run_lets_its_command_end(tmp_path, number):
    """The trainer saves a checkpoint; and the signal comes once, since a second one would stop it at once."""
    code = f"""
import os, sys
from t2t_lite.extras.quickstart import commands
script = '''
trap 'echo one >> {tmp_path}/signals' TERM INT
touch {tmp_path}/started
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done
touch {tmp_path}/ended
'''
commands.run("bash", "-c", script)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, process_group=0
    )
    while not (tmp_path / "started").exists():
        time.sleep(0.05)
    os.killpg(process.pid, number)  # as a terminal does
    _, err = process.communicate(timeout=60)
    assert (tmp_path / "ended").exists()
    assert (tmp_path / "signals").read_text() == "one\n"
    assert err.startswith("quickstart: stopped. ")


def test_without_the_phrasebook_it_wants_files(monkeypatch, capsys):
    monkeypatch.setattr(t2t_quickstart, "extras", dict)
    assert t2t_quickstart.main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "phrasebook" in line and "--train_files=a.en,a.de" in line
