"""Folders whose names hold a glob's characters are folders like any other, and their look-alikes are left alone."""

import pytest

from t2t_lite.process.lazy import extras
from tests.data import corpus

TINY = (
    "hidden_size=16,filter_size=16,num_heads=2,num_hidden_layers=1,batch_size=256,max_length=64,"
    "learning_rate_warmup_steps=5"
)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
def test_data_of_a_look_alike_are_not_touched(tmp_path, call_command):
    source = corpus.write_corpus(tmp_path, "a", corpus.sentence_pairs(80))
    flags = ["--problem=translate_own", f"--train_files={source}", f"--dev_files={source}", "--vocab_size=310"]
    assert call_command("t2t-datagen", *flags, "--data_dir=data1").status == 0
    before = contents(tmp_path / "data1")
    for name in ("data[1]", "data*"):
        (tmp_path / name).mkdir()
        for path in (tmp_path / "data1").iterdir():
            if "-dev-" not in path.name:
                (tmp_path / name / path.name).write_bytes(path.read_bytes())
        assert call_command("t2t-datagen", *flags, f"--data_dir={name}").status == 0
        assert contents(tmp_path / "data1") == contents(tmp_path / name) == before
        if "inspection" in extras():
            assert call_command("t2t-datagen", "--inspect", flags[0], f"--data_dir={name}").status == 0


@pytest.mark.long  # trains, and decodes with five models
def test_from_corpus_to_translation(tmp_path, call_command):
    """The whole way in such folders, beside a folder that the names would match as patterns."""
    mark, alike = " [v1] {a}*?", " v {a}bc"
    corpora = tmp_path / f"corpora{mark}"
    corpora.mkdir()
    decoy = tmp_path / f"run{alike}"
    decoy.mkdir()
    for name in ("model.ckpt-1.index", "model.ckpt-1.data-00000-of-00001", "model.ckpt-9_temp", "checkpoint"):
        (decoy / name).write_text("theirs")
    source = corpus.write_corpus(corpora, "a", corpus.sentence_pairs(80))
    data, run = f"data{mark}", f"run{mark}"

    def call(command, *flags):
        result = call_command(command, *flags)
        assert result.status == 0, result.stderr
        return result

    call(
        "t2t-datagen", "--problem=translate_own", f"--train_files={source}", f"--dev_files={source}",
        "--vocab_size=310", f"--data_dir={data}", f"--tmp_dir=tmp{mark}",
    )  # fmt: skip
    train = [
        "t2t-trainer", f"--data_dir={data}", f"--output_dir={run}", "--problem=translate_own", "--model=transformer",
        "--hparams_set=transformer_tiny", f"--hparams={TINY}", "--local_eval_frequency=2", "--eval_steps=1",
        "--keep_checkpoint_max=2",
    ]  # fmt: skip
    (tmp_path / run).mkdir()
    (tmp_path / run / "model.ckpt-9_temp").mkdir()
    call(*train, "--train_steps=4")
    resumed = call(*train, "--train_steps=8")
    assert "resumed at step 4" in resumed.stderr
    steps = {path.name for path in (tmp_path / run).glob("model.ckpt-*.index")}
    assert steps == {"model.ckpt-6.index", "model.ckpt-8.index"}  # the manager deletes its own
    assert not (tmp_path / run / "model.ckpt-9_temp").exists()
    assert "t2t_lite_" not in (tmp_path / run / "checkpoint").read_text()
    call("t2t-avg-all", f"--model_dir={run}", f"--output_dir=avg{mark}", "--n=2")
    exported = call("t2t-exporter", f"--output_dir={run}", f"--export_dir=export{mark}")
    assert "Copy the export to a folder without" in exported.stderr
    (tmp_path / f"in{mark}").write_text("the house\n")
    for path in (f"avg{mark}", f"export{mark}", f"{run}/model.ckpt-6"):
        where = f"--checkpoint_path={path}" if "ckpt" in path else f"--output_dir={path}"
        call("t2t-decoder", where, f"--decode_from_file=in{mark}", f"--decode_to_file=out{mark}")
        assert (tmp_path / f"out{mark}").read_text().count("\n") == 1
        (tmp_path / f"out{mark}").unlink()
    assert set(contents(decoy).values()) == {b"theirs"}
    assert len(contents(decoy)) == 4
