"""t2t-datagen --inspect."""

import pytest

from tests.data import corpus


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--problem=translate_own", "--data_dir=d", "--inspect"], ["d/problem.json: no such file", "--train_files="]),
        (
            ["--problem=translate_ende_wmt_characters", "--data_dir=d", "--inspect"],
            ["no such records. Run: t2t-datagen --problem=translate_ende_wmt_characters --data_dir=d"],
        ),
        (["--problem=translate_own", "--data_dir=d", "--inspect", "--vocab_size=9"], ["--vocab_size: not with --insp"]),
        (
            ["--problem=translate_own", "--data_dir=d", "--hparams=a=1"],
            ["--hparams: not with generation, only"],
        ),
        (
            ["--problem=translate_ende_wmt_characters", "--data_dir=d", "--inspect", "--hparams_set=transformer_bas"],
            ["'transformer_bas' is not registered", "transformer_base"],
        ),
    ],
)
def test_mistakes(tmp_path, call_command, assert_user_error, flags, words):
    assert_user_error(call_command("t2t-datagen", *flags), *words)
    assert not (tmp_path / "d").exists()


@pytest.mark.slow
def test_inspect_shows_and_generates_nothing(tmp_path, call_command):
    files = [
        f"--{name}_files={corpus.write_corpus(tmp_path, name, corpus.sentence_pairs(count, seed))}"
        for name, count, seed in (("train", 200, 1), ("dev", 20, 2))
    ]
    own = ("t2t-datagen", "--problem=translate_own", "--data_dir=d")
    assert call_command(*own, "--vocab_size=320", *files).status == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()}
    flags = ("--data_dir=d/", "--inspect", "--hparams_set=transformer_tiny", "--hparams=max_length=9")
    result = call_command("t2t-datagen", "--problem=translate_own_rev", *flags)
    assert result.status == 0, result.stderr
    assert result.stdout.startswith("translate_own_rev in d\n")
    assert "inputs (de)  targets (en)" in result.stdout
    assert "max_length=9 (transformer_tiny with max_length=9)" in result.stdout
    assert result.stdout.strip().endswith("lengths as a picture: d/translate_own_rev-lengths.png")
    picture = (tmp_path / "d" / "translate_own_rev-lengths.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    after = {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()}
    assert after == {**before, "translate_own_rev-lengths.png": picture}
    (tmp_path / "d" / "translate_own-dev-00000-of-00001").unlink()
    result = call_command("t2t-datagen", "--problem=translate_own", *flags)
    assert result.status == 2 and "Traceback" not in result.stderr
    assert "translate_own-dev" in result.stderr.splitlines()[-1] and "no such records" in result.stderr
