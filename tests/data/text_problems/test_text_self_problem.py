"""Text alone, ported from tensor2tensor as it stands."""

import pytest

from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit, Text2SelfProblem, VocabType
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.data.stored import read_examples

TEXTS = ["to be", "or not", " ", "to be, that is the question"]


class Lines(Text2SelfProblem):
    name = "lines"
    is_generate_per_split = True
    vocab_type = VocabType.CHARACTER
    dataset_splits = [{"split": s, "shards": 2} for s in (DatasetSplit.TRAIN, DatasetSplit.EVAL)]  # noqa: RUF012

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for text in TEXTS:
            yield {"targets": text}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("lines"))
    Lines().generate_data(folder, folder)
    return folder


def test_records_hold_targets_alone(data_dir):
    found = read_examples(Records(Lines(), data_dir, DatasetSplit.TRAIN).paths)
    expected = [{"targets": [*ByteTextEncoder().encode(text), 1]} for text in TEXTS if text != " "]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert find_manifest(Lines(), data_dir)["splits"]["train"]["removed"] == {"empty": 1}


def test_samples_of_pairs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Lines, "generate_samples", lambda *args: [{"inputs": "a"}])
    with pytest.raises(UserError, match=r'lines: generate_samples gave .*Expected \{"targets": str\}'):
        Lines().generate_data(str(tmp_path), str(tmp_path))
