"""t2t-datagen --inspect."""

# Nearest tests of: extras/inspection/in_t2t_datagen.py

import pytest

from tests.data import corpus


@pytest.mark.slow
def test_inspect_shows_and_generates_nothing(tmp_path, call_command, assert_user_error):
    pairs = {name: corpus.sentence_pairs(count, count) for name, count in (("train", 300), ("dev", 20))}
    files = [f"--{name}_files={corpus.write_corpus(tmp_path, name, pairs[name])}" for name in pairs]
    made = call_command("t2t-datagen", "--problem=translate_own", "--vocab_size=320", "--data_dir=d", *files)
    assert made.status == 0, made.stderr
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
    assert_user_error(call_command("t2t-datagen", "--problem=translate_own", *flags), "translate_own-dev", "Run:")
