"""deploy/c's program with a little SavedModel of any signatures; tests/export has it answer with exports."""

import json

import pytest
import tensorflow as tf

from tests.export.c_program import build, run

pytestmark = pytest.mark.slow  # each process loads TensorFlow's library


class Texts(tf.Module):
    """Signatures of all kinds that the program reads and writes."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def measure(self, inputs):
        characters = tf.strings.unicode_split(inputs, "UTF-8")
        lengths = tf.cast(characters.row_lengths(), tf.int32)
        ranges = tf.RaggedTensor.from_row_lengths(tf.range(tf.reduce_sum(lengths)), lengths)
        return {
            "characters": characters.to_tensor(),
            "inverse": 1 / tf.cast(lengths, tf.float32),
            "lengths": lengths,
            "pairs": tf.stack([ranges.to_tensor(-1)] * 2, 2),
            "short": lengths < 3,
            "text": inputs,
        }

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "first"),
            tf.TensorSpec([None], tf.string, "second"),
            tf.TensorSpec(None, tf.float32, "scale"),
            tf.TensorSpec(None, tf.int32, "times"),
        ]
    )
    def join(self, first, second, scale, times):
        tf.debugging.assert_greater(times, 0, "times is not positive")
        values = scale * tf.cast(times * tf.ones_like(tf.strings.length(first)), tf.float32)
        return {"text": first + "|" + second, "values": values}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(tmp_path_factory.mktemp("c"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder, module = str(tmp_path_factory.mktemp("saved")), Texts()
    tf.saved_model.save(module, folder, {"serving_default": module.measure, "join": module.join})
    return folder


def answers(done):
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_all_types_and_shapes(program, saved):
    """Blank lines, NULs, quotation marks, control characters and tabs are text; a last line needs no end.

    Lines may end as on Windows.
    """
    done = run(program, saved, lines='ab\r\n\n"\\\x00\t\nä'.encode())
    expected = [
        (["a", "b", "", ""], 0.5, 2, True, "ab", [[0, 0], [1, 1], [-1, -1], [-1, -1]]),
        ([""] * 4, None, 0, True, "", [[-1, -1]] * 4),
        (['"', "\\", "\0", "\t"], 0.25, 4, False, '"\\\0\t', [[2, 2], [3, 3], [4, 4], [5, 5]]),
        (["ä", "", "", ""], 1.0, 1, True, "ä", [[6, 6], [-1, -1], [-1, -1], [-1, -1]]),
    ]
    names = ["characters", "inverse", "lengths", "short", "text", "pairs"]
    assert answers(done) == [dict(zip(names, values, strict=True)) for values in expected]
    assert f"TensorFlow {tf.__version__}: loaded in " in done.stderr.decode()
    assert ", 4 lines in " in done.stderr.decode()


def test_lines_keep_their_order(program, saved):
    """Of more lines than one run takes, and of columns."""
    lines = "".join(f"{i}\t{i + 1}\n" for i in range(100)).encode()
    found = answers(run(program, saved, "join", "second", "first", "times=3", "scale=-0.5", lines=lines))
    assert found == [{"text": f"{i + 1}|{i}", "values": -1.5} for i in range(100)]
    assert answers(run(program, saved)) == []


# Each: arguments, "" for the folder of the SavedModel; lines; environment; what the error says.
_COLUMNS = ["", "join", "first", "second", "scale=1"]
MISTAKES = {
    "a folder that is not there": (["nowhere"], b"", {}, "nowhere: Could not find SavedModel"),
    "a signature that is not there": (["", "joint"], b"", {}, "no signature joint; there are: "),
    "an input that is not there": (["", "join", "third"], b"", {}, "third: the signature has no such input"),
    "columns without names": (["", "join", "scale=1", "times=1"], b"", {}, "several string inputs: name them all"),
    "a missing number": (_COLUMNS, b"", {}, "the signature needs times=NUMBER"),
    "no number": ([*_COLUMNS, "times=2.5"], b"", {}, "times=2.5: not a number that this input takes"),
    "a missing column": ([*_COLUMNS, "times=1"], b"a\tb\nc\n", {}, "line 2: not 2 columns"),
    "an error of the graph": ([*_COLUMNS, "times=0"], b"a\tb\n", {}, "lines from 1 on: assertion failed: [times is"),
    "no text operations": ([""], b"", {"TEXT_OPERATIONS": "/nowhere"}, "/nowhere/_sentencepiece_tokenizer.so: cannot"),
}


@pytest.mark.few("a folder that is not there", "a missing column", "an error of the graph", "no text operations")
@pytest.mark.parametrize("arguments, lines, environment, message", MISTAKES.values(), ids=MISTAKES)
def test_mistakes(program, saved, arguments, lines, environment, message):
    export, *rest = arguments
    done = run(program, export or saved, *rest, lines=lines, **environment)
    error = done.stderr.decode().splitlines()[-1]  # TensorFlow's log is above
    assert done.returncode == 2 and done.stdout == b"", error
    assert error.startswith("run_export: ") and message in error


def test_answers_that_cannot_be_written_are_an_error(program, saved):
    """Also if the buffer of the output, 4096 bytes, is empty at the end."""
    arguments, lines = ("join", "first", "second", "scale=1", "times=1"), [b"a\t\n"]
    lines += [b"a" * (4097 - len(run(program, saved, *arguments, lines=lines[0]).stdout)) + lines[0]]
    for line in lines:
        with open("/dev/full", "wb") as full:
            done = run(program, saved, *arguments, lines=line, stdout=full)
        assert done.returncode == 2
        assert "run_export: standard output: No space left on device" in done.stderr.decode()
