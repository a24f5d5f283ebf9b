"""Small files of runs and data folders that are damaged or odd: each reader reads them or ends in one sentence."""

# Nearest tests of: t2t_lite/runs/checkpoint_files.py, t2t_lite/runs/log.py, t2t_lite/runs/run_config.py

import json
import os
import shutil

import pytest

from t2t_lite import registry
from t2t_lite.data.manifests import read_begun, read_manifest
from t2t_lite.errors import UserError
from t2t_lite.runs import checkpoint_files, locating
from t2t_lite.runs.log import lineage, read_lines
from t2t_lite.runs.run_config import read_run_config
from t2t_lite.training.settings import RememberedFlags
from tests.data.hostile import variants
from tests.runs.configs import CONFIG

TEXTS = {
    "empty": b"", "null": b"null", "a list": b"[]", "a number": b"5", "a text": b'"x"', "open": b"{",
    "not UTF-8": b"\xff", "NaN": b'{"a": NaN}', "infinite": b'{"a": 1e999}', "6,000 digits": b"9" * 6000,
    "a long number": b'{"a": %s}' % (b"9" * 6000), "deep": b"[" * 10_000, "deep objects": b'{"a":' * 10_000,
    "NULs": bytes(50), "twice": b'{"a": 1, "a": 2}', "negative": b"-1", "beyond int64": b"9223372036854775808",
    "Arabic digits": "١٢".encode(), "a surrogate": b'{"a": "\\ud800"}', "blank": b"\n\n",
    "a huge step": b'{"event": "start", "step": 9223372036854775808}\n',
}  # fmt: skip
FACTS = {
    "shards": 1, "examples": 2, "tokens": {"inputs": 3, "targets": 4}, "lengths": {"3": 2}, "bytes": [9],
    "side_lengths": {"inputs": {"3": 2}, "targets": {"3": 2}}, "largest_id": {"inputs": 3, "targets": 4},
}  # fmt: skip
RUN = CONFIG | {"format": 1, "target_vocab_size": 300, "plan": {"train_steps": 3, "schedule": "train"}}
EVENTS = [
    {"event": "start", "step": 0, "time": 1.5},
    {"event": "evaluation", "step": 2, "loss": 1.5, "bleu": 2.5, "split": "dev"},
    {"event": "best", "step": 2, "best_step": 2, "metric": "bleu", "value": 2.5},
    {"event": "checkpoint", "step": 2, "data_batch": 2},
]
LISTED = (
    b'model_checkpoint_path: "model.ckpt-2"\nall_model_checkpoint_paths: "model.ckpt-2"\nlast_preserved_timestamp: 1\n'
)


def _read_run(path):
    config = read_run_config(os.path.dirname(path))
    RememberedFlags(os.path.dirname(path), config.get("plan", {})).settings()


def _read_log(path):
    lineage(read_lines(path))


def _scored(path):
    """Scores a folder of translations as t2t-bleu does, which reads what has been scored before."""
    folder = os.path.dirname(path)
    os.makedirs(os.path.join(folder, "translations"), exist_ok=True)
    for name in ("ref", "translations/x-3"):
        with open(os.path.join(folder, name), "w") as file:
            file.write("Ada runs .\n")
    reference = os.path.join(folder, "ref")
    module = pytest.importorskip("t2t_lite.extras.translate_all.score_folder")
    list(module.score_folder(os.path.join(folder, "translations"), reference, [["Ada runs ."]], event_dir=folder))


def _exported(path):
    locating.read_facts(os.path.dirname(os.path.dirname(os.path.dirname(path))))


READERS = {  # {name of the file: (what it holds, what reads it)}
    "hparams.json": (RUN, _read_run),
    "train.log": (EVENTS, _read_log),
    "checkpoint": (LISTED, lambda path: checkpoint_files.newest_checkpoint(os.path.dirname(path))),
    "last_evaluated_step.txt": (b"2\n", _scored),
    "problem.json": (
        {"files": {"train": [{"path": "a", "bytes": 3}]}, "vocab_size": 300, "languages": ["en", "de"], "held_out": 3},
        lambda path: registry.problem("translate_own").read_config(os.path.dirname(path)),
    ),
    "a-manifest.json": (
        {"request": {"problem": "a"}, "splits": {"train": FACTS}, "vocabulary": {"inputs": {"size": 3, "sha256": "0"}},
         "vocabulary_files": ["vocab.a"]},
        lambda path: read_manifest(path, ("inputs", "targets")),
    ),
    "a-manifest.json.begun": ({"request": {}, "to_learn": ["vocab.a"]}, read_begun),
    "assets.extra/t2t_lite/export.json": (
        {"format": 1, "models": 1, "steps": [3], "weights_dtype": "float32"}, _exported
    ),
}  # fmt: skip


def _content(value):
    if isinstance(value, bytes):
        return value
    values = value if isinstance(value, list) else [value]  # lines, or a file
    return b"\n".join(json.dumps(each).encode() for each in values) + b"\n"


def _damaged(value):
    """Yields (what is wrong, bytes, or None for a folder)."""
    content = _content(value)
    yield from TEXTS.items()
    yield "a folder", None
    yield "cut", content[:-9]
    yield "twice as much", content * 2
    yield "a NUL inside", content.replace(b"2", b"\0").replace(b"3", b"\0")
    yield "long digits", content.replace(b"3", b"9" * 5000)
    for number, part in enumerate(value if isinstance(value, list) else [value] if isinstance(value, dict) else ()):
        for place, changed in variants(part):
            changed = [*value[:number], changed, *value[number + 1 :]] if isinstance(value, list) else changed
            yield f"{number}: {place}", _content(changed)


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_named_in_one_sentence(tmp_path, name):
    value, read = READERS[name]
    path, refused, wrong = tmp_path / "folder" / name, 0, []
    for what, content in [("nothing", _content(value)), *_damaged(value)]:
        shutil.rmtree(tmp_path / "folder", ignore_errors=True)
        path.parent.mkdir(parents=True)
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)
        try:
            read(str(path))
        except UserError as error:
            refused += 1
            is_sentence = str(error).isprintable() and len(str(error)) <= 500
            if what == "nothing" or not is_sentence or path.name not in str(error):
                wrong.append(f"{what}: {str(error)[:300]}")
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__}: {str(error)[:200]}")
    assert not wrong, "\n".join(wrong)
    assert refused > 10 or name == "checkpoint"  # which is only a hint: what can't be read is as if it were not there
