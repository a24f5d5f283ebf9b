"""t2t-datagen as a process that is killed again and again."""

import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.processes import wait_for

PAIRS = 40_000  # three chunks


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("corpus"), random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(1, 7))) for _ in range(500)]
    for name, count in (("train", PAIRS), ("dev", 20)):
        for side in ("en", "de"):
            lines = (" ".join(draw.choices(words, k=draw.randint(1, 4))) for _ in range(count))
            (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
    return folder


def flags(corpus, data_dir, workers):
    return [
        "--problem=translate_own",
        f"--data_dir={data_dir}",
        f"--train_files={corpus}/train.en,{corpus}/train.de",
        f"--dev_files={corpus}/dev.en,{corpus}/dev.de",
        "--vocab_size=600",
        f"--num_workers={workers}",
    ]


@pytest.fixture
def start_datagen(start, corpus):
    """Starts the command for a folder, with so many workers."""

    def start_datagen(data_dir, workers):
        program = pathlib.Path(sys.executable).with_name("t2t-datagen")
        # The tests may run in the background, where shells have Ctrl-C ignored, and so do all processes from there.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return start([program, *flags(corpus, data_dir, workers)], stderr=subprocess.PIPE, text=True)
        finally:
            signal.signal(signal.SIGINT, before)

    return start_datagen


def wait_for_file(folder, pattern, process):
    def there():
        assert process.poll() is None, f"ended before {pattern}: {process.stderr.read()}"
        return list(folder.glob(pattern))

    wait_for(there, 300, why=lambda: pattern, pause=0.002)


def children(pid):
    """Returns the processes that one has started."""
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def is_alive(pid):
    """Whether a process is there, and no zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
@pytest.mark.slow  # it starts processes
def test_a_second_interrupt_does_not_leave_it_waiting(start_datagen, tmp_path):
    process = start_datagen(tmp_path / "data", 3)
    wait_for_file(tmp_path, "data/*.chunk-00001", process)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    said = process.communicate(timeout=100)[1]
    assert process.returncode == 130 and said.endswith("\nt2t-datagen: interrupted\n")


@pytest.mark.long  # a process for each file that it is killed at
def test_killed_at_any_file_the_result_is_that_of_one_run(corpus, start_datagen, call_command, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert call_command("t2t-datagen", *flags(corpus, whole, 1)).status == 0
    for pattern in ("*chunk-00000.t2t_lite_incomplete", "*chunk-00001.json", "*train-00000-of-0000[0-9]"):
        process = start_datagen(parts, 2)
        wait_for_file(parts, pattern, process)
        workers = children(process.pid)
        process.kill()
        process.wait()
        wait_for(lambda of=workers: not any(map(is_alive, of)), why=lambda: "workers outlive their parent")
        process.stderr.close()
    process = start_datagen(parts, 2)
    said = process.communicate(timeout=900)[1]
    assert process.returncode == 0, said
    assert contents(parts) == contents(whole)
