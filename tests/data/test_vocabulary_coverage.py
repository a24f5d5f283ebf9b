"""A vocabulary of another language is said where data are generated."""

import logging
import types

import pytest

from t2t_lite.data.generation import coverage
from t2t_lite.data.problem import DatasetSplit, Text2TextProblem
from t2t_lite.text import subwords
from t2t_lite.text.published.byte_level_bpe import learn_byte_level_bpe
from t2t_lite.text.vocabulary import ByteTextEncoder
from t2t_lite.text.vocabulary_files import open_encoder
from tests.data import corpus

ENGLISH = [text for text, _ in corpus.sentence_pairs(200)]
THAI = "\u0e1a\u0e49\u0e32\u0e19\u0e2a\u0e35\u0e41\u0e14\u0e07"


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    subwords.train_sentencepiece(ENGLISH, str(folder / "pieces"), 320)
    learn_byte_level_bpe(ENGLISH, str(folder / "x-vocab.json"), 300)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "house"]))
    return {name: open_encoder(str(folder / name)) for name in ("pieces.model", "x-vocab.json", "vocab.txt")}


def shares(encoder, text):
    return {name: round(share, 2) for name, share in coverage(encoder, encoder.encode(text)).items()}


@pytest.mark.parametrize(
    ("name", "known", "unknown", "in_bytes"),
    [("pieces.model", "the red house", 0, 0.96), ("x-vocab.json", "the red house", 0, 1), ("vocab.txt", "the", 1, 0)],
)
def test_shares_of_unknown_ids_and_bytes(vocabularies, name, known, unknown, in_bytes):
    encoder = vocabularies[name]
    assert shares(encoder, known) == {"<unk>": 0, "byte pieces": 0}
    assert shares(encoder, THAI) == {"<unk>": unknown, "byte pieces": in_bytes}
    assert shares(ByteTextEncoder(), THAI) == {"<unk>": 0, "byte pieces": 0}


@pytest.mark.parametrize(("text", "level"), [("the red house", None), (THAI, logging.WARNING)])
def test_generation_says_it(tmp_path, vocabularies, caplog, text, level):
    class Adopting(Text2TextProblem):
        name = "adopting"
        is_generate_per_split = True
        existing_vocabularies = types.MappingProxyType(
            dict.fromkeys(("inputs", "targets"), vocabularies["pieces.model"].path)
        )

        @property
        def dataset_splits(self):
            return [{"split": DatasetSplit.TRAIN, "shards": 1}, {"split": DatasetSplit.EVAL, "shards": 1}]

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            for _ in range(20):
                yield {"inputs": "the red house", "targets": text}

    with caplog.at_level(logging.INFO, "t2t_lite"):
        Adopting().generate_data(str(tmp_path), str(tmp_path))
    said = [record for record in caplog.records if "byte pieces" in record.getMessage()]
    assert [record.levelno for record in said] == ([level] if level else [])
    if level:
        assert "adopting: targets have 0.0 % <unk> and 93.1 % byte pieces among their ids" in said[0].getMessage()
