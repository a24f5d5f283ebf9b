"""t2t-importer, and the commands on what it made: decode, fine-tune, export."""
# Nearest tests of: bin/t2t_importer.py

# Nearest tests of: extras/hugging_face/in_t2t_importer.py, extras/hugging_face/config_file.py

import json

import pytest

from t2t_lite.export import saved_model
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.hugging_face.gpt_folders import write_gpt


@pytest.mark.slow
def test_an_encoder(call_command, assert_user_error, tmp_path):
    """A classifier of pairs goes in and out again; --problem belongs to encoders of Hugging Face alone."""
    write_encoder(tmp_path / "theirs", "BertForSequenceClassification")
    importer = ["t2t-importer", "--from=hugging_face", "--path=theirs"]
    assert call_command(*importer, "--problem=classify_pair_own", "--output_dir=run").stdout == "run/model.ckpt-0\n"
    back = call_command("t2t-exporter", "--output_dir=run", "--format=hugging_face", "--export_dir=back")
    assert back.stdout == "back\n", back
    for name in ("model.safetensors", "vocab.txt"):
        assert (tmp_path / "back" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    other = call_command(*importer, "--problem=regress_own", "--output_dir=x")
    assert_user_error(other, "--problem=regress_own", "classify_own or classify_pair_own")


@pytest.mark.slow
def test_a_language_model(call_command, assert_user_error, tmp_path, monkeypatch):
    """GPT-2 goes in, out again, and into a SavedModel with all settings of its search or its samples."""
    write_gpt(tmp_path / "theirs")
    importer = ["t2t-importer", "--from=hugging_face", "--path=theirs"]
    assert call_command(*importer, "--output_dir=run").stdout == "run/model.ckpt-0\n"
    assert_user_error(call_command(*importer, "--output_dir=x", "--languages=en,de"), "--languages", "gpt2")
    back = call_command("t2t-exporter", "--output_dir=run", "--format=hugging_face", "--export_dir=back")
    assert back.stdout == "back\n", back
    assert json.loads((tmp_path / "back" / "config.json").read_text())["architectures"] == ["GPT2LMHeadModel"]
    given = []
    monkeypatch.setattr(saved_model, "export_saved_model", lambda *_, **options: given.append(options) or "x")
    settings = {
        "sampling_method": "random", "sampling_temp": 0.5, "sampling_keep_top_k": 9, "sampling_keep_top_p": 0.5,
        "sampling_seed": 3, "extra_length": 7, "no_repeat_ngram_size": 2, "repetition_penalty": 1.5,
    }  # fmt: skip
    words = ",".join(f"{name}={value}" for name, value in settings.items())
    assert call_command("t2t-exporter", "--output_dir=run", f"--decode_hparams={words}").stdout == "x\n"
    expected = [True, *list(settings.values())[1:]]
    names = ("sampling", "temperature", "top_k", "top_p", "seed", "extra_length", "no_repeat_ngram_size")
    assert [given[0][name] for name in (*names, "repetition_penalty")] == expected
    assert call_command("t2t-exporter", "--output_dir=run", "--decode_hparams=stop=x").stdout == "x\n"
    assert [*given[1]["stop"]] == ["x"]
