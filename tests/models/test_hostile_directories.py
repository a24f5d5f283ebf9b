"""A model's folder may come from anywhere: whatever is in it, opening it ends in a one-line error or in a model."""

import gc
import json
import os
import random
import resource
import sys
import time

import pytest
import tensorflow as tf

from t2t_lite.errors import Failure, UserError
from t2t_lite.process.lazy import extras
from t2t_lite.runs.locating import find_checkpoint, read_config_of
from t2t_lite.runs.opening import open_run
from tests.decoding.runs import make_run
from tests.export.old_models import OldModel

TRIES, SECONDS, MOST_MIB = 400, 12, 700
NASTY = [
    None, True, False, 0, -1, 1, 3, 10**9, 10**400, -(10**9), 2**31, 2**63, 2**64, 0.5, 1e308, "", "x", "1e999", "-1",
    "__import__", "eval", "object", "transformer_rev", "translate_own_rev_rev", "../../etc/passwd", "/etc/passwd", "\0",
    "\ud800", "é" * 9, "a" * 100_000, [], [1], [[[]]], {}, {"a": 1}, {"inputs": 1}, ["en", "de", "fr"], [None] * 50,
]  # fmt: skip
TEXTS = [
    b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1e999}', b'{"a": 1, "a": 2}',
    b"[" * 100_000, b'{"a":' * 100_000, b'{"a": ' + b"9" * 10_000 + b"}", b"\0" * 100, b"(dp0\n",
    b"cos\nsystem\n(S'x'\ntR.",
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{name of a file: content} of good folders, of both kinds of vocabulary."""
    folder = tmp_path_factory.mktemp("good")
    spm = make_run(folder / "spm")
    OldModel(hidden=16, filter=32, heads=2, layers=1).write(folder / "old")
    if "tensor2tensor" not in extras():
        return [{path.name: path.read_bytes() for path in spm.iterdir()}]
    from t2t_lite.extras.tensor2tensor.tensor2tensor_hparams import import_tensor2tensor

    vocabulary = [str(folder / "old" / "vocab.subwords")]
    import_tensor2tensor(str(folder / "old"), vocabulary, str(folder / "imported"), languages=("en", "de"))
    return [{path.name: path.read_bytes() for path in made.iterdir()} for made in (spm, folder / "imported")]


def places(value, path=()):
    """Yields the paths of all values in JSON."""
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from places(item, (*path, key))


def changed_json(rng, content):
    value = json.loads(content)
    *parents, last = rng.choice([path for path in places(value) if path])
    inner = value
    for key in parents:
        inner = inner[key]
    if rng.random() < 0.2:
        del inner[last]
    else:
        inner[last] = rng.choice(NASTY)
    if rng.random() < 0.2 and isinstance(inner, dict):
        inner[rng.choice(["hidden_size ", "__class__", "_own", "", "own" * 1000])] = rng.choice(NASTY)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def changed_bytes(rng, content):
    content = bytearray(content)
    kind = rng.randrange(5)
    at = rng.randrange(len(content) + 1)
    if kind == 0:
        return bytes(content[:at])
    if kind == 1:
        return bytes(content[:at] + rng.randbytes(rng.choice([1, 4, 100])) + content[at:])
    if kind == 2 and len(content) > 8:
        start = rng.randrange(len(content) - 8)
        return bytes(content[:start] + content[start + rng.randrange(1, 8) :])
    for _ in range(rng.choice([1, 3, 30])):
        if content:
            content[rng.randrange(len(content))] = rng.choice([0, 0xFF, 0x7F, 0x80, rng.randrange(256)])
    return bytes(content)


def mutated(rng, files):
    files = dict(files)
    name = rng.choice([*files, "hparams.json", "problem.json"])
    if rng.random() < 0.08:
        del files[name]
        return name, files
    weights = [0.7, 0.15, 0.15] if name.endswith(".json") else [0, 0.9, 0.1]
    (change,) = rng.choices([changed_json, changed_bytes, lambda rng, content: rng.choice(TEXTS)], weights)
    files[name] = change(rng, files[name])
    return name, files


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def try_changed(rng, folder, tries, seconds, open_it, folders):
    """Opens folders, each with a changed file; returns how many were opened and how many refused in one line."""
    began, outcomes = time.monotonic(), {"opened": 0, "refused": 0}
    for number in range(tries):
        if time.monotonic() - began > seconds:
            break
        name, files = mutated(rng, rng.choice(folders))
        write(folder, files)
        try:
            open_it()
            outcomes["opened"] += 1
        except (UserError, Failure) as error:
            assert "\n" not in str(error) and len(str(error)) < 2000, (number, name, str(error)[:3000])
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"try {number}, {name}: {files.get(name, b'')[-300:]!r}") from error
    assert min(outcomes.values()) > 0, outcomes
    return outcomes


@pytest.mark.long
def test_changed_folders(folders, tmp_path, capsys):
    write(tmp_path / "run", folders[0])
    open_run(str(tmp_path / "run"))
    before = peak_mib()
    outcomes = try_changed(
        random.Random(8), tmp_path / "run", TRIES, SECONDS, lambda: open_run(str(tmp_path / "run")), folders
    )
    with capsys.disabled():
        print(f" [{sum(outcomes.values())} changed folders: {outcomes}]", end="", file=sys.stderr)
    assert sum(outcomes.values()) >= 30
    assert peak_mib() - before < MOST_MIB


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, value",
    [
        ("hidden_size", 10**9), ("filter_size", 10**9), ("num_hidden_layers", 10**6), ("num_heads", 10**9),
        ("hidden_size", 2**16), ("filter_size", 2**18), ("num_hidden_layers", 40), ("attention_key_channels", 2**18),
        ("vocab_size", 2**24), ("max_position", 2**20),
    ],
)  # fmt: skip
def test_a_model_that_the_checkpoint_is_not_of_takes_no_memory(folders, tmp_path, name, value):
    files = dict(folders[0])
    config = json.loads(files["hparams.json"])
    (config if name in config else config["hparams"])[name] = value
    if name == "max_position":
        config["hparams"] |= {"pos": "emb", "hidden_size": 2**10}
    write(tmp_path / "run", {**files, "hparams.json": json.dumps(config).encode()})
    gc.collect()  # what earlier tests left is not counted, if it is freed only now
    before = peak_mib()
    with pytest.raises(UserError):
        open_run(str(tmp_path / "run"))
    assert peak_mib() - before < 100


def config_with(folders, **changes):
    return json.dumps({**json.loads(folders[0]["hparams.json"]), **changes}).encode()


@pytest.mark.parametrize(
    "path", ["{run}/evil", "evil", "evil.inner", "{run}/../run/evil", "/proc/self/cwd/evil", "{link}/evil"]
)
def test_python_in_a_models_folder_is_not_run(folders, tmp_path, monkeypatch, path):
    run = tmp_path / "run"
    write(run, {**folders[0]})
    for folder in (run, tmp_path):
        (folder / "evil").mkdir()
        (folder / "evil" / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "link").symlink_to(run)
    monkeypatch.chdir(tmp_path)
    usr_dir = path.format(run=run, link=tmp_path / "link")
    (run / "hparams.json").write_bytes(config_with(folders, problem="not_registered", usr_dir=usr_dir))
    with pytest.raises(UserError, match="--t2t_usr_dir=FOLDER"):
        read_config_of(str(run / "model.ckpt-100"))
    assert not (tmp_path / "ran").exists()


def test_the_list_of_checkpoints_does_not_lead_elsewhere(folders, tmp_path):
    write(tmp_path / "run", folders[0])
    write(tmp_path / "other", {name: data for name, data in folders[0].items() if name.startswith("model.ckpt")})
    (tmp_path / "run" / "checkpoint").write_text(f'model_checkpoint_path: "{tmp_path}/other/model.ckpt-100"\n')
    assert find_checkpoint(str(tmp_path / "run")) == str(tmp_path / "run" / "model.ckpt-100")
    (tmp_path / "run" / "checkpoint").write_text('model_checkpoint_path: "../other/model.ckpt-100"\n')
    assert os.path.realpath(find_checkpoint(str(tmp_path / "run"))) == str(tmp_path / "run" / "model.ckpt-100")


def test_a_vocabularys_name_leads_nowhere(folders, tmp_path):
    """`vocab_size` is a part of the file's name."""
    problem = {**json.loads(folders[0]["problem.json"]), "vocab_size": "../../../x"}
    write(tmp_path / "run", {**folders[0], "problem.json": json.dumps(problem).encode()})
    with pytest.raises(UserError, match=r"problem.json: 'vocab_size'"):
        open_run(str(tmp_path / "run"))


@pytest.mark.slow
def test_huge_files_are_not_read(folders, tmp_path):
    write(tmp_path / "run", folders[0])
    for name in ("hparams.json", next(name for name in folders[0] if name.endswith(".model"))):
        write(tmp_path / "run", folders[0])
        with open(tmp_path / "run" / name, "wb") as file:
            file.truncate(2**33)  # takes no room on the disk
        before = peak_mib()
        with pytest.raises(UserError, match=r"larger than|more than"):
            open_run(str(tmp_path / "run"))
        assert peak_mib() - before < 1024


@pytest.mark.slow
@pytest.mark.parametrize("tries", [60, pytest.param(200, marks=pytest.mark.long)])
def test_an_import_of_changed_files(folders, tmp_path, tries):
    """The same of tensor2tensor's checkpoint, settings and subwords."""
    pytest.importorskip("t2t_lite.extras.tensor2tensor")
    from t2t_lite.extras.tensor2tensor.tensor2tensor_hparams import import_tensor2tensor

    old = OldModel(hidden=8, filter=8, heads=2, layers=1, shards=2)
    old.write(tmp_path / "good")
    good = {path.name: path.read_bytes() for path in (tmp_path / "good").iterdir()} | {"problem.json": b'{"a": 1}'}
    vocabulary, output_dir = [str(tmp_path / "old" / "vocab.subwords")], str(tmp_path / "new")

    def import_it():
        try:
            import_tensor2tensor(str(tmp_path / "old"), vocabulary, output_dir, languages=("en", "de"))
            tf.io.gfile.rmtree(output_dir)
        finally:
            assert not os.path.exists(output_dir) and not os.path.exists(output_dir + ".incomplete")

    outcomes = try_changed(random.Random(3), tmp_path / "old", tries, SECONDS / 2, import_it, [good])
    assert sum(outcomes.values()) >= 10
