"""Published weights of an XLNet: imported, tuned, answering and given back, by the commands."""

import pytest

import t2t_lite
from tests.extras.xlnet.xlnet_folders import write_warm_and_cold, write_xlnet


@pytest.mark.long
def test_imported_tuned_and_given_back(call_command, tmp_path):
    write_warm_and_cold(tmp_path / "a.tsv")
    write_xlnet(tmp_path / "theirs", "XLNetLMHeadModel")
    of_problem = ["--problem=classify_own", "--data_dir=data"]
    hparams = "learning_rate_schedule=constant,learning_rate_constant=0.003,batch_size=256"
    steps = ["--train_steps=150", "--local_eval_frequency=150", f"--hparams={hparams}"]
    for command in (
        ["t2t-importer", "--from=hugging_face", "--path=theirs", "--output_dir=xlnet"],
        ["t2t-datagen", *of_problem, "--train_files=a.tsv", "--dev_files=a.tsv", "--vocab_from=xlnet"],
        ["t2t-trainer", *of_problem, "--output_dir=tuned", "--warm_start_from=xlnet", *steps],
        ["t2t-exporter", "--output_dir=tuned", "--format=hugging_face", "--export_dir=back"],
        ["t2t-importer", "--from=hugging_face", "--path=back", "--output_dir=again"],
    ):
        result = call_command(*command)
        assert result.status == 0, result
    predictor, texts = t2t_lite.load("tuned"), ["the in red", "12 in Un"]
    answers = predictor.predict(texts)
    assert [answer.label for answer in answers] == ["warm", "cold"]
    assert predictor.model.config["last_id"] == t2t_lite.load("xlnet").model.config["last_id"] > 0
    assert t2t_lite.load("again").predict(texts) == answers
