"""A vocabulary for each side, from two text files to translations; a second run begins with the first one's weights."""

import json
import re

import pytest

from tests.data import corpus

pytestmark = pytest.mark.slow  # seven commands


@pytest.mark.long
def test_from_files_to_translations_and_to_a_second_run(call_command, tmp_path):
    def succeed(*words):
        result = call_command(*words)
        assert result.status == 0, f"{words}\n{result.stderr}"
        return result

    pairs = corpus.sentence_pairs(400)
    own = ["t2t-datagen", "--problem=translate_own", f"--dev_files={corpus.write_corpus(tmp_path, 'dev', pairs[:40])}"]
    first = f"--train_files={corpus.write_corpus(tmp_path, 'first', pairs[40:])}"
    second = f"--train_files={corpus.write_corpus(tmp_path, 'second', pairs[200:])}"
    small = (
        "--hparams=num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=512,eval_decode_examples=0"
    )
    train = ["t2t-trainer", "--hparams_set=transformer_tiny", small]

    result = succeed(*own, first, "--data_dir=data", "--vocab_size=300", "--target_vocab_size=310")
    assert "vocabulary from 360 of 360 samples" in result.stderr
    succeed(*train, "--problem=translate_own", "--data_dir=data", "--output_dir=run", "--train_steps=4")
    config = json.loads((tmp_path / "run" / "hparams.json").read_text())
    assert (config["vocab_size"], config["target_vocab_size"]) == (300, 310)
    (tmp_path / "texts").write_text("the old house\nthe child buys bread\n")
    # The folder of the run is all that decoding needs.
    (tmp_path / "data").rename(tmp_path / "data-elsewhere")
    succeed("t2t-decoder", "--output_dir=run", "--decode_from_file=texts", "--decode_to_file=translations")
    assert len((tmp_path / "translations").read_text().splitlines()) == 2

    tune = [*train, "--problem=translate_own", "--warm_start_from=run"]
    succeed(*own, second, "--data_dir=other", "--vocab_size=305", "--target_vocab_size=310")
    result = succeed(*tune, "--data_dir=other", "--output_dir=other-pieces", "--train_steps=1")
    taken = re.findall(r"vocabularies differ: (\w+)/embeddings: (\d+) of (\d+) rows", result.stderr)
    assert [(name, rows) for name, _, rows in taken] == [("input_embedding", "305"), ("target_embedding", "310")]
    assert all(259 < int(both) <= int(rows) for _, both, rows in taken), "bytes, special ids and some more"
    [start] = [line for line in (tmp_path / "other-pieces" / "train.log").read_text().splitlines() if "start" in line][
        :1
    ]
    assert json.loads(start)["warm_start_rows"] == {f"{n}/embeddings": [int(both), int(of)] for n, both, of in taken}
