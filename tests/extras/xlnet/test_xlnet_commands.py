"""Published weights of an XLNet: imported, tuned, answering, exported to be served, and given back, by the commands."""

import numpy as np
import pytest

import t2t_lite
from tests.export.served import served
from tests.extras.xlnet.xlnet_folders import write_warm_and_cold, write_xlnet


@pytest.mark.long
def test_imported_tuned_served_and_given_back(call_command, tmp_path):
    write_warm_and_cold(tmp_path / "a.tsv")
    write_xlnet(tmp_path / "theirs", "XLNetLMHeadModel")

    def run(*words):
        found = call_command(*words)
        assert found.status == 0, found
        return found

    run("t2t-importer", "--from=hugging_face", "--path=theirs", "--output_dir=xlnet")
    files = ["--train_files=a.tsv", "--dev_files=a.tsv", "--vocab_from=xlnet"]
    run("t2t-datagen", "--problem=classify_own", "--data_dir=data", *files)
    hparams = "learning_rate_schedule=constant,learning_rate_constant=0.003,batch_size=256"
    train = [
        "t2t-trainer",
        "--problem=classify_own",
        "--data_dir=data",
        "--output_dir=tuned",
        "--warm_start_from=xlnet",
    ]
    run(*train, "--train_steps=150", "--local_eval_frequency=150", f"--hparams={hparams}")
    predictor, texts = t2t_lite.load("tuned"), ["the in red", "12 in Un"]
    answers = predictor.predict(texts)
    assert [answer.label for answer in answers] == ["warm", "cold"]
    assert predictor.model.config["last_id"] == t2t_lite.load("xlnet").model.config["last_id"] > 0
    (tmp_path / "texts").write_text("\n".join(texts))
    run("t2t-decoder", "--output_dir=tuned", "--decode_from_file=texts", "--decode_to_file=labels")
    assert [line.split("\t")[0] for line in (tmp_path / "labels").read_text().splitlines()] == ["warm", "cold"]
    run("t2t-exporter", "--output_dir=tuned", "--export_dir=export")
    found = served(str(tmp_path / "export" / "1"))("predict", {"inputs": [text.encode() for text in texts]})
    expected = [[*answer.probabilities.values()] for answer in answers]
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)
    run("t2t-exporter", "--output_dir=tuned", "--format=hugging_face", "--export_dir=back")
    run("t2t-importer", "--from=hugging_face", "--path=back", "--output_dir=again")
    assert t2t_lite.load("again").predict(texts) == answers
