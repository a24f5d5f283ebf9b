"""Bodies of relatives of BERT through the commands: imported, tuned, and exported as classifiers of their family."""

import json

import pytest

from tests.extras.hugging_face.encoder_folders import write_encoder


@pytest.mark.long
@pytest.mark.parametrize("kind, activation", [("DistilBert", "relu"), ("Electra", "gelu"), ("XLMRoberta", "tanh")])
def test_a_body_is_tuned_and_goes_back_as_a_classifier(call_command, tmp_path, kind, activation):
    """With the class head of its own family, although only its name was there before."""
    write_encoder(tmp_path / "theirs", f"{kind}Model")
    lines = ["good\tthe cafe", "bad\tun cafe", "good\tthe red cafe"] * 8
    (tmp_path / "train.tsv").write_text("".join(f"{line}\n" for line in lines))
    of_problem = ["--problem=classify_own", "--data_dir=data"]
    for command in (
        ["t2t-importer", "--from=hugging_face", "--path=theirs", "--output_dir=run"],
        ["t2t-datagen", *of_problem, "--train_files=train.tsv", "--dev_files=train.tsv", "--vocab_from=run"],
        ["t2t-trainer", *of_problem, "--output_dir=tuned", "--warm_start_from=run", "--train_steps=2"],
        ["t2t-exporter", "--output_dir=tuned", "--format=hugging_face", "--export_dir=back"],
        ["t2t-importer", "--from=hugging_face", "--path=back", "--output_dir=again"],
    ):
        result = call_command(*command)
        assert result.status == 0, result
    said = json.loads((tmp_path / "back" / "config.json").read_text())
    assert said["architectures"] == [f"{kind}ForSequenceClassification"]
    assert sorted(said["id2label"].values()) == ["bad", "good"]
    hparams = [json.loads((tmp_path / run / "hparams.json").read_text())["hparams"] for run in ("tuned", "again")]
    assert [values["pooler_activation"] for values in hparams] == [activation] * 2
