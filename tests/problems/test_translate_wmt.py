"""The problems on published corpora, from archives in exactly the published layouts."""

import gzip
import os
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, VocabType
from t2t_lite.problems import translate_wmt
from tests.data import packing

SPLITS = (DatasetSplit.TRAIN, DatasetSplit.EVAL, DatasetSplit.TEST)
WMT13 = ("cs", "de", "es", "fr", "ru")

# What the archives hold, written out independently of the tables: {archive: {member: language}}.
LAYOUT = {
    "training-parallel-europarl-v7.tgz": {
        f"training/europarl-v7.{x}-en.{side}": side for x in ("cs", "de", "es", "fr") for side in (x, "en")
    },
    "training-parallel-commoncrawl.tgz": {
        **{f"commoncrawl.{x}-en.{side}": side for x in WMT13 for side in (x, "en")},
        **{f"commoncrawl.{x}-en.annotation": "note" for x in WMT13},
    },
    "training-parallel-nc-v9.tgz": {
        f"training/news-commentary-v9.{x}-en.{side}": side for x in ("cs", "de", "fr", "ru") for side in (x, "en")
    },
    "training-parallel-nc-v13.tgz": {
        f"training-parallel-nc-v13/news-commentary-v13.{x}-en.{side}": side
        for x in ("cs", "de", "ru", "zh")
        for side in (x, "en")
    },
    "training-parallel-un.tgz": {f"un/undoc.2000.{x}-en.{side}": side for x in ("es", "fr") for side in (x, "en")},
    "training-giga-fren.tar": {"giga-fren.release2.fixed.en.gz": "en", "giga-fren.release2.fixed.fr.gz": "fr"},
    "dev.tgz": {f"dev/newstest2013.{x}": x for x in (*WMT13, "en")},
    "test-full.tgz": {
        f"test-full/newstest2014-{pair}-{part}.{x}.sgm": x
        for pair, other in (("csen", "cs"), ("deen", "de"), ("fren", "fr"))
        for part, x in (("src", "en"), ("ref", "en"), ("src", other), ("ref", other))
    },
    "baseline-1M-enfr.tgz": {
        f"baseline-1M-enfr/baseline-1M_{part}.{x}": x for part in ("train", "valid") for x in ("en", "fr")
    },
    "data-plaintext-format.tar": {
        f"data.plaintext-format/{number:02d}{part}.gz": "czeng"
        for number in range(2)
        for part in ("train", "dtest", "etest")
    },
    "paracrawl-release1.en-es.zipporah0-dedup-clean.tgz": {
        f"paracrawl-release1.en-es.zipporah0-dedup-clean.{x}": x for x in ("en", "es")
    },
    "paracrawl-release1.en-et.zipporah0-dedup-clean.tgz": {
        f"paracrawl-release1.en-et.zipporah0-dedup-clean.{x}": x for x in ("en", "et")
    },
    "training-parallel-ep-v8.tgz": {
        f"training/europarl-v8.{x}-en.{side}": side for x in ("et", "fi") for side in (x, "en")
    },
    "rapid2016.tgz": {
        f"rapid2016.{pair}.{side}": side for pair in ("de-en", "en-et", "en-fi") for side in pair.split("-")
    },
    "newsdev2018-enet.tar.gz": {"newsdev2018-enet-src.en": "en", "newsdev2018-enet-ref.et": "et"},
    "en-de.bicleaner07.tmx.gz": {"": "tmx"},
    "ro-en.tgz": {"europarl-v7.ro-en.en": "en", "europarl-v7.ro-en.ro": "ro"},
    "en-ro.txt.zip": {"README": "note", "SETIMES.en-ro.en": "en", "SETIMES.en-ro.ro": "ro"},
    "dev-romanian-updated.tgz": {
        f"dev/newsdev2016-{pair}-{part}.{x}.sgm": x
        for pair, part, x in (
            ("roen", "src", "ro"),
            ("roen", "ref", "en"),
            ("enro", "src", "en"),
            ("enro", "ref", "ro"),
        )
    },
    "train-en-vi.tgz": {"train.en": "en", "train.vi": "vi"},
    "dev-2012-en-vi.tgz": {"tst2012.en": "en", "tst2012.vi": "vi"},
    "IWSLT17.train.en-id.tok.tgz": {f"IWSLT17.train.en-id.tok.{x}": x for x in ("en", "id")},
    "IWSLT17.TED.tst2017plus.en-id.tok.tgz": {f"IWSLT17.TED.tst2017plus.en-id.tok.{x}": x for x in ("en", "id")},
    **{
        f"PANL-BPPT-{part}-EN-ID-{words}.tok.tgz": {
            f"PANL-BPPT-{part}-EN-{words}.tok.txt": "en",
            f"PANL-BPPT-{part}-ID-{words}.tok.txt": "id",
        }
        for part, words in (("ECO", "150Kw"), ("INT", "150Kw"), ("SCI", "100Kw"), ("SPO", "100Kw"))
    },
    "setimes.en-mk.txt.tgz": {"setimes.en-mk.en.txt": "en", "setimes.en-mk.mk.txt": "mk"},
    "MTE-1984-dev.enmk.tgz": {"MTE1984-dev.en": "en", "MTE1984-dev.mk": "mk"},
    "eng_tswane.train.tar.gz": {"entn_parallel.train.en": "en", "entn_parallel.train.tn": "tn"},
    "eng_tswane.dev.tar.gz": {"entn_parallel.dev.en": "en", "entn_parallel.dev.tn": "tn"},
}

# Which archives each family reads, in order, and how many pairs of three lines a member that makes.
FAMILIES = {
    "ende_wmt": ("de", ["europarl-v7", "commoncrawl", "nc-v9"], ["dev.tgz"], ["test-full"]),
    "enfr_wmt": ("fr", ["commoncrawl", "europarl-v7", "nc-v9", "giga-fren", "un"], ["dev.tgz"], ["test-full"]),
    "enfr_wmt_small": ("fr", ["baseline-1M"], ["baseline-1M"], ["test-full"]),
    "ende_pc": ("de", ["en-de.bicleaner"], ["dev.tgz"], ["test-full"]),
    "ende_wmt_pc": ("de", ["europarl-v7", "commoncrawl", "nc-v9", "en-de.bicleaner"], ["dev.tgz"], ["test-full"]),
    "encs": ("cs", ["data-plaintext", "data-plaintext", "nc-v13", "commoncrawl", "europarl-v7"], ["dev.tgz"], []),
    "enes": ("es", ["commoncrawl", "europarl-v7", "un", "paracrawl-release1.en-es"], ["dev.tgz"], []),
    "enet": ("et", ["ep-v8", "paracrawl-release1.en-et", "rapid2016"], ["newsdev2018"], []),
    "enro": ("ro", ["ro-en.tgz", "en-ro.txt.zip"], ["dev-romanian"], []),
    "envi": ("vi", ["train-en-vi"], ["dev-2012"], []),
    "enid": ("id", ["IWSLT17.train", "BPPT-ECO", "BPPT-INT", "BPPT-SCI", "BPPT-SPO"], ["tst2017plus"], []),
    "enmk": ("mk", ["setimes"], ["MTE-1984"], []),
    "entn": ("tn", ["eng_tswane.train"], ["eng_tswane.dev"], []),
}


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    packing.shut_out_the_world(monkeypatch, tmp_path)


def content(archive, member, language):
    """Returns three lines that say where they come from."""
    texts = [f"{language} of {archive} R&amp;D {i}" for i in range(3)]
    if language == "czeng":
        texts = [f"id\t0.9\tcs of {archive} {member} {i}\ten of {archive} {member} {i}" for i in range(3)]
    if member.endswith(".sgm"):
        return packing.sgm([text.replace("R&amp;D", 'R&D "<x>"') for text in texts])
    data = packing.lines(texts)
    return gzip.compress(data) if member.endswith(".gz") else data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with all archives."""
    folder = tmp_path_factory.mktemp("archives")
    for archive in LAYOUT:
        if archive.endswith(".tmx.gz"):
            (folder / archive).write_bytes(
                gzip.compress(packing.tmx(*([f"{x} of {archive} R&D {i}" for i in range(3)] for x in ("en", "de"))))
            )
        else:
            members = {name: content(archive, name, language) for name, language in LAYOUT[archive].items()}
            packing.write_archive(folder / archive, members)
    return folder


def names_of_family(family):
    wmt = f"translate_{family}" if "_" in family else f"translate_{family}_"
    special = [part for part in ("small", "_pc", "phrasebook") if part not in family]
    return [name for name in registry.list_problems(wmt) if not any(part in name for part in special)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_problem_reads_its_corpora_from_english(site, family):
    language, *splits = FAMILIES[family]
    for name in names_of_family(family):
        problem = registry.problem(name)
        assert problem.languages == ("en", language)
        for split, parts in zip(SPLITS, splits, strict=True):
            pairs = [tuple(pair.values()) for pair in problem.generate_samples("", str(site), split)] if parts else []
            assert len(pairs) == 3 * len(parts), (name, split)
            assert (split in [part["split"] for part in problem.dataset_splits]) == bool(parts)
            for number, (inputs, targets) in enumerate(pairs):
                archive = parts[number // 3]
                assert re.match(rf"en of \S*{re.escape(archive)}", inputs), (name, inputs)
                assert re.match(rf"{language} of \S*{re.escape(archive)}", targets), (name, targets)
                # Plain text stays as it is, as in tensor2tensor; the entities of .sgm and .tmx files are decoded.
                is_sgm = archive in ("test-full", "dev-romanian")
                assert ('R&D "<x>"' in inputs) == is_sgm
                assert (" R&D " in inputs) == (is_sgm or archive == "en-de.bicleaner")
                assert inputs.split()[-1] == targets.split()[-1] == str(number % 3)
    assert sorted(os.listdir(site)) == sorted(LAYOUT), "something derived is kept"


def test_all_problems_are_covered():
    covered = {name for family in FAMILIES for name in names_of_family(family)}
    names, kind = registry.list_problems("translate_"), translate_wmt.CorporaProblem
    corpora_problems = {name for name in names if isinstance(registry.problem(name), kind)}
    assert corpora_problems <= covered
    ende, enfr = ("wmt37k", "wmt32k", "wmt8k", "wmt_characters"), ("wmt32k", "wmt8k", "wmt_small8k", "wmt_small32k")
    assert {f"translate_ende_{size}" for size in ende} | {f"translate_enfr_{size}" for size in enfr} <= corpora_problems
    for name in corpora_problems:
        stated = re.search(r"_[a-z]*?(\d+)k$|(characters)$|entn_rma$", name)
        problem = registry.problem(name)
        assert (problem.vocab_type == VocabType.CHARACTER) == bool(stated[2])
        assert stated[2] or problem.approx_vocab_size == {"37": 37000, "32": 2**15, "8": 2**13, None: 2**15}[stated[1]]
        assert registry.problem(name + "_rev").languages == registry.problem(name).languages[::-1]


def test_checksums_are_those_of_tensorflow_datasets():
    import tensorflow_datasets as tfds

    theirs = tfds.download.checksums.get_all_url_infos()
    for url, (length, sha256) in translate_wmt.CHECKSUMS.items():
        assert (int(theirs[url].size), theirs[url].checksum) == (length, sha256)
    addresses = {translate_wmt.source(name, x)[0] for name, row in translate_wmt.CORPORA.items() for x in row.languages}
    assert set(translate_wmt.CHECKSUMS) <= addresses


def test_a_language_that_a_corpus_lacks():
    with pytest.raises(ValueError, match=r"corpus un has no de. Expected one of es fr"):
        translate_wmt.source("un", "de")
