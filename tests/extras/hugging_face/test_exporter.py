"""t2t-exporter --format=hugging_face: what of the command is this format's."""

# Nearest tests of: extras/hugging_face/in_t2t_exporter.py

import json
import os

import pytest

from t2t_lite.extras.hugging_face import hugging_face
from tests.decoding.runs import make_language_model_run, make_run

MARIAN = {
    "layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan", "norm_epsilon": 1e-5,
    "position_layout": "marian",
}  # fmt: skip


def test_settings_that_a_format_does_not_keep(call_command, tmp_path, monkeypatch):
    """Of a language model hugging_face keeps none; of what it exports its own tests tell."""
    given = []
    monkeypatch.setattr(hugging_face, "export_hugging_face", lambda *args, **options: given.append(options) or "x")
    run = make_language_model_run(tmp_path / "lm")
    flags = f"--output_dir={run}", "--format=hugging_face", "--decode_hparams=beam_size=2"
    result = call_command("t2t-exporter", *flags)
    assert (result.status, result.stdout) == (0, "x\n") and given[0].keys() == {"license", "command"}
    assert "warning: --decode_hparams: beam_size: no effect with --format=hugging_face" in result.stderr


@pytest.mark.slow
def test_other_formats_go_into_a_new_folder(call_command, tmp_path):
    """The paper's layout is a Marian's."""
    settings = "--decode_hparams=beam_size=3,alpha=1,extra_length=9"
    made = make_run(tmp_path / "post", **MARIAN)
    command = ["t2t-exporter", f"--output_dir={made}", "--format=hugging_face", settings]
    result = call_command(*command)
    assert result.stdout == f"{made}/hugging_face\n"
    assert "warning: --decode_hparams: extra_length: no effect with --format=hugging_face" in result.stderr
    search = json.loads((made / "hugging_face" / "generation_config.json").read_text())
    assert (search["num_beams"], search["length_penalty"]) == (3, 1.0)
    again = call_command(*command)
    assert again.status == 2 and "already contains files" in again.stderr


@pytest.mark.parametrize(
    "flag, words",
    [
        ("--export_dir=file", ["file", "is a file"]),
        ("--weights_dtype=bfloat16", ["--weights_dtype", "--format=saved_model"]),
    ],
)
def test_mistakes(call_command, assert_user_error, tmp_path, flag, words):
    made = make_run(tmp_path / "run")
    (tmp_path / "file").write_text("")
    args = {f.split("=")[0]: f for f in [f"--output_dir={made}", "--export_dir=export", flag]}
    assert_user_error(call_command("t2t-exporter", "--format=hugging_face", *args.values()), *words)
    assert sorted(os.listdir(tmp_path)) == ["file", "run"]
