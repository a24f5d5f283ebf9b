"""From archives in the published layouts to records, through the command."""

import json
import os
import random
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from tests.data import packing
from tests.data.stored import decoded

SPLITS = (DatasetSplit.TRAIN, DatasetSplit.EVAL, DatasetSplit.TEST)


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    packing.shut_out_the_world(monkeypatch, tmp_path)


def word_pairs(count, seed):
    """Returns pairs over so many different words that 8,192 pieces can be learned of them."""
    words = random.Random(0)
    lexicon = ["".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(4000)]
    draw = random.Random(seed)
    pairs = []
    for number in range(count):
        chosen = draw.choices(lexicon, k=8)
        pairs.append((f"{number} {' '.join(chosen)}", f"{' '.join(word[::-1] for word in chosen)} {number}"))
    return pairs


@pytest.fixture
def ende_archives(tmp_path):
    """Writes the archives of translate_ende_wmt*; returns {split: pairs}."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    pairs = {split: word_pairs(count, i) for i, (split, count) in enumerate(zip(SPLITS, (1200, 30, 20), strict=True))}

    def write(archive, pattern, part, escape=packing.lines):
        sides = dict(zip(("en", "de"), zip(*part, strict=True), strict=True))
        members = {pattern.format(side): escape(texts) for side, texts in sides.items()}
        packing.write_tar(folder / archive, {"training/other.fr-en.en": b"not this\n", **members})

    train = pairs[DatasetSplit.TRAIN]
    write("training-parallel-europarl-v7.tgz", "training/europarl-v7.de-en.{}", train[:500])
    write("training-parallel-commoncrawl.tgz", "commoncrawl.de-en.{}", train[500:900])
    write("training-parallel-nc-v9.tgz", "training/news-commentary-v9.de-en.{}", train[900:])
    write("dev.tgz", "dev/newstest2013.{}", pairs[DatasetSplit.EVAL])
    sides = [
        packing.sgm(texts, side)
        for texts, side in zip(zip(*pairs[DatasetSplit.TEST], strict=True), ("src", "ref"), strict=True)
    ]
    names = ("test-full/newstest2014-deen-src.en.sgm", "test-full/newstest2014-deen-ref.de.sgm")
    packing.write_tar(folder / "test-full.tgz", dict(zip(names, sides, strict=True)))
    return pairs


GENERATE = ("t2t-datagen", "--problem=translate_ende_wmt8k", "--data_dir=d", "--tmp_dir=tmp", "--num_workers=1")


@pytest.mark.slow
def test_from_archives_to_records(tmp_path, ende_archives, call_command):
    before = sorted(os.listdir(tmp_path / "tmp"))
    result = call_command(*GENERATE)
    assert result.status == 0, result.stderr
    assert sorted(os.listdir(tmp_path / "tmp")) == before
    assert len([line for line in result.stderr.splitlines() if "had News Commentary v13" in line]) == 1
    assert result.stderr.count("using the local file") == 3, "each archive of another size is spoken of once"
    assert "dev.tgz: " not in result.stderr, "an archive of unknown size is spoken of"
    assert re.search(r"europarl-v7.tgz: has [\d,]+ bytes, .* http://www.statmt.org/\S+ has 657,632,379", result.stderr)
    problem = registry.problem("translate_ende_wmt8k")
    encoders = problem.get_feature_encoders(str(tmp_path / "d"))
    assert encoders["inputs"].vocab_size == 8192
    for split, shards in zip(SPLITS, (100, 1, 1), strict=True):
        paths = Records(problem, str(tmp_path / "d"), split).paths
        assert len(paths) == shards
        assert sorted(decoded(problem, tmp_path / "d", split)) == sorted(ende_archives[split])
    manifest = json.loads((tmp_path / "d" / "translate_ende_wmt8k-manifest.json").read_text())
    assert [facts["examples"] for facts in manifest["splits"].values()] == [1200, 30, 20]
    assert manifest["request"]["archives"]["test"] == ["test-full.tgz"]
    again = call_command(*GENERATE)
    assert again.status == 0
    assert "nothing to do" in again.stderr
