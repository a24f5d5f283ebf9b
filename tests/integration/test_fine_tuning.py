"""LoRA by the commands: from a run or published weights to exports that answer as the run does."""

import json
import random

import numpy as np
import pytest

from t2t_lite.process.lazy import extras
from t2t_lite.runs.weights import open_checkpoint
from tests.export.served import served
from tests.integration.conftest import replaced

SIZES = "num_hidden_layers=1,hidden_size=32,filter_size=64,num_heads=2,batch_size=512,eval_decode_examples=0"
RATE = "learning_rate_schedule=constant,learning_rate_constant=0.003"
WORDS = {"red": "rot", "green": "grün", "blue": "blau", "sky": "Himmel", "sea": "Meer", "house": "Haus"}


@pytest.fixture
def run(call_command):
    def run(*words):
        found = call_command(*words)
        assert found.status == 0, found
        return found

    return run


def weights(path):
    reader = open_checkpoint(str(path))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if name.startswith("model/")}


def write_pairs(folder, name, is_turned):
    """Writes texts of three words, whose translation is in the same order, or turned."""
    draw = random.Random(1)
    rows = [draw.choices([*WORDS], k=3) for _ in range(300)]
    (folder / f"{name}.en").write_text("".join(" ".join(row) + "\n" for row in rows))
    turned = [[WORDS[word] for word in (reversed(row) if is_turned else row)] for row in rows]
    (folder / f"{name}.de").write_text("".join(" ".join(row) + "\n" for row in turned))


@pytest.mark.long
def test_a_translation_model_learns_by_lora_and_its_exports_answer_as_it_does(run, call_command, tmp_path):
    for name in ("old", "new"):
        write_pairs(tmp_path, name, is_turned=name == "new")
        files = [f"--train_files={name}.en,{name}.de", f"--dev_files={name}.en,{name}.de", f"--data_dir={name}"]
        more = ["--vocab_size=300"] if name == "old" else ["--vocab_from=run"]
        run("t2t-datagen", "--problem=translate_own", *files, *more)
        train = ["t2t-trainer", "--problem=translate_own", f"--data_dir={name}", "--train_steps=200",
                 "--local_eval_frequency=100", "--log_step_count_steps=50"]  # fmt: skip
        if name == "old":
            run(*train, "--output_dir=run", "--hparams_set=transformer_tiny", f"--hparams={SIZES},{RATE}")
        else:
            tune = [*train, "--output_dir=tuned", "--warm_start_from=run", "--hparams=lora_rank=4,lora_alpha=8"]
            said = run(*tune)
    assert "of which 4,608 are trained" in said.stderr
    log = [json.loads(line) for line in (tmp_path / "tuned" / "train.log").read_text().splitlines()]
    losses = [line["loss"] for line in log if line["event"] == "progress"]
    assert losses[-1] < 0.7 * losses[0]
    before, after = (weights(tmp_path / name / "model.ckpt-200") for name in ("run", "tuned"))
    assert len(after) == len(before) + 2 * (6 + 10)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)

    texts = ["red sea sky", "house blue green"]
    (tmp_path / "texts").write_text("\n".join(texts) + "\n")
    run("t2t-decoder", "--output_dir=tuned", "--decode_from_file=texts", "--decode_to_file=of_run")
    run("t2t-exporter", "--output_dir=tuned", "--export_dir=export")
    run("t2t-decoder", "--output_dir=export/1", "--decode_from_file=texts", "--decode_to_file=of_export")
    translations = (tmp_path / "of_run").read_text()
    assert translations.splitlines() == ["Himmel Meer rot", "grün blau Haus"]
    assert (tmp_path / "of_export").read_text() == translations
    answers = served(str(tmp_path / "export" / "1"))("serving_default", {"inputs": [text.encode() for text in texts]})
    assert [output.decode() for output in answers["outputs"].tolist()] == translations.splitlines()
    run("t2t-avg-all", "--model_dir=tuned", "--output_dir=avg", "--n=2")
    run("t2t-decoder", "--output_dir=avg", "--decode_from_file=texts", "--decode_to_file=of_average")
    if "describe" in extras():
        described = run("t2t-trainer", "--describe", "--output_dir=tuned").stdout
        assert "  trained" in described and "4,608" in described
    refused = call_command(*tune[:-1], "--hparams=lora_rank=2")
    assert refused.status == 2 and "lora_rank cannot change during a run" in refused.stderr
    refused = call_command(*replaced(tune, "--output_dir=other", "--hparams=frozen=softmax"))
    assert refused.status == 2 and "has no part softmax. Expected" in refused.stderr
