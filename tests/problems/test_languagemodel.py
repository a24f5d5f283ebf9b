"""Language models of published texts, on small archives with the published names, and of the user's own."""

import gzip
import itertools

import pytest

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.problems.languagemodel import Enwik8L512
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.data.packing import write_archive
from tests.problems import own
from tests.problems.own import CHARACTERS
from tests.problems.published import generated, targets_of

PTB = {"train": " the cat <unk> \n the N dog \n the cat \n", "valid": " the cow \n", "test": " a cat \n"}
NEWS = "1-billion-word-language-modeling-benchmark-r13output"
LINES = "\n = Title = \n \n the cat @-@ sat \n"
ENWIK8 = bytes(range(256)) * 4 + "ÄÖ".encode() * 150 + "ÜÖ".encode() * 150  # 2,224 bytes


def spelled(text):
    """Characters with spaces between them, as in Mikolov's files; a space may stand at both ends of a line."""
    return "".join(f"{' '.join(line.replace(' ', '_'))}\n" for line in text.splitlines())


ARCHIVES = {
    "simple-examples.tgz": {
        **{f"./simple-examples/data/ptb.{split}.txt": text for split, text in PTB.items()},
        **{f"./simple-examples/data/ptb.char.{split}.txt": spelled(text) for split, text in PTB.items()},
    },
    f"{NEWS}.tar.gz": {
        f"{NEWS}/training-monolingual.tokenized.shuffled/news.en-00001-of-00100": "The dog barks .\nThe dog Xyzzy .\n",
        f"{NEWS}/training-monolingual.tokenized.shuffled/news.en-00002-of-00100": "The dog .\n",
        f"{NEWS}/heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-00050": "The dog .\n",
        f"{NEWS}/heldout-monolingual.tokenized.shuffled/news.en.heldout-00001-of-00050": "never read\n",
    },
    "wikitext-103-v1.zip": {f"wikitext-103/wiki.{s}.tokens": LINES for s in ("train", "valid", "test")},
    "wikitext-103-raw-v1.zip": {f"wikitext-103-raw/wiki.{s}.raw": LINES for s in ("train", "valid", "test")},
    "enwik8.zip": {"enwik8": ENWIK8},
}


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    folder = tmp_path_factory.mktemp("downloads")
    for name, members in ARCHIVES.items():
        write_archive(folder / name, members)
    (folder / "vocab-2016-09-10.txt").write_text("The\ndog\nbarks\n.\n")
    return folder


@pytest.mark.parametrize(
    "name, train, dev",
    [
        ("languagemodel_ptb10k", ["the cat <unk>", "the N dog", "the cat"], ["the <unk>"]),
        ("languagemodel_ptb_characters", ["the cat <unk>", "the N dog", "the cat"], ["the cow"]),
        ("languagemodel_lm1b_characters", ["The dog barks .", "The dog UNK .", "The dog ."], ["The dog ."]),
        ("languagemodel_wikitext103", ["= Title =", "the cat @-@ sat"], ["= Title =", "the cat @-@ sat"]),
        ("languagemodel_wikitext103_characters", ["= Title =", "the cat @-@ sat"], ["= Title =", "the cat @-@ sat"]),
    ],
)
def test_each_line_is_a_record(tmp_path, downloads, name, train, dev):
    problem = generated(name, tmp_path, downloads)
    encoder = problem.get_feature_encoders(str(tmp_path))["targets"]
    for split, expected in ((DatasetSplit.TRAIN, train), (DatasetSplit.EVAL, dev)):
        found = targets_of(problem, tmp_path, split)
        assert sorted(map(encoder.decode, found)) == sorted(expected) and all(row[-1] == 1 for row in found)
    words = sum(len(text.split()) for text in train) + len(train)
    assert find_manifest(problem, str(tmp_path))["splits"]["train"]["units"]["word"] == words


@pytest.mark.parametrize(("most_words", "words"), [(10_000, ["the", "cat", "N", "dog"]), (3, ["the", "cat"])])
def test_the_most_frequent_words_are_kept_and_unknown_is_one_of_them(tmp_path, downloads, most_words, words):
    problem = registry.problem("languagemodel_ptb10k")
    problem.most_words = most_words
    encoder = generated(problem, tmp_path, downloads).get_feature_encoders(str(tmp_path))["targets"]
    assert encoder.pieces(range(encoder.vocab_size)) == ["<pad>", "</s>", "<unk>", *words]


def test_sentences_share_pieces_of_a_vocabulary(tmp_path, downloads):
    problem = generated("languagemodel_lm1b8k", tmp_path, downloads)
    encoder = problem.get_feature_encoders(str(tmp_path))["targets"]
    assert [encoder.decode(row) for row in targets_of(problem, tmp_path, DatasetSplit.EVAL)] == ["The dog ."]


def test_rows_of_words_keep_the_ends_of_lines(tmp_path, downloads):
    class Short(type(registry.problem("languagemodel_wikitext103_l4k"))):
        name = "short"
        sequence_length = 4

    problem = generated(Short(), tmp_path, downloads)
    found = targets_of(problem, tmp_path, DatasetSplit.TEST)
    assert [len(row) for row in found] == [4, 4, 1]
    ids = list(itertools.chain(*found))
    encoder = problem.get_feature_encoders(str(tmp_path))["targets"]
    assert [encoder.decode(part) for part in (ids[:4], ids[4:])] == ["= Title =", "the cat @-@ sat"]


@pytest.mark.parametrize(
    "split, begin, end, step", [("train", 0, 1024, 128), ("eval", 1024, 1624, 512), ("test", 1624, 2224, 512)]
)
def test_bytes_are_read_in_rows(tmp_path, downloads, split, begin, end, step):
    class Small(Enwik8L512):
        held_out_bytes = 600

    problem = generated(Small(), tmp_path, downloads)
    found, part = targets_of(problem, tmp_path, split), ENWIK8[begin:end]
    expected = [part[start : start + 512] for start in range(0, len(part) - 512 + step, step)]
    assert sorted(bytes(i - 2 for i in row) for row in found) == sorted(expected)
    if split != "train":
        ids = list(itertools.chain(*found))
        assert ids == ByteTextEncoder().encode(part.decode())
        counts = find_manifest(problem, str(tmp_path))["splits"][split]["units"]
        assert counts == {"character": len(part.decode()), "byte": len(part)}


def test_too_few_bytes_and_a_missing_archive_are_named(tmp_path, downloads):
    with pytest.raises(UserError, match=r"enwik8: 2,224 bytes\. Expected more than the 10,000,000"):
        generated("enwik8_l1k", tmp_path / "d", downloads)
    (tmp_path / "cut").mkdir()
    for name in ("enwik8.zip", "wikitext-103-v1.zip"):
        (tmp_path / "cut" / name).write_bytes((downloads / name).read_bytes()[:-40])
    for problem in ("enwik8_l1k", "languagemodel_wikitext103"):
        with pytest.raises(UserError, match=r"\.zip.*damaged or truncated"):
            generated(problem, tmp_path / "e", tmp_path / "cut")


def test_the_rows_of_tensor2tensors_names():
    lengths = {"l65k": 65536, **{f"l{n}k": 1024 * n for n in (32, 16, 8, 4, 2, 1)}, "l512": 512}
    assert {name: registry.problem(f"enwik8_{name}").sequence_length for name in lengths} == lengths
    for name, attribute, value in (
        ("lm1b32k", "approx_vocab_size", 2**15),
        ("lm1b8k", "approx_vocab_size", 2**13),
        ("lm1b32k", "max_samples_for_vocab", 63_000),
        ("ptb10k", "most_words", 10_000),
        ("wikitext103_l4k", "sequence_length", 4096),
        ("wikitext103_l16k", "sequence_length", 16384),
    ):
        assert getattr(registry.problem(f"languagemodel_{name}"), attribute) == value
    enwik8 = registry.problem("enwik8_l65k")
    assert (enwik8.held_out_bytes, enwik8.overlap, enwik8.train_shards) == (5_000_000, 4, 16)


# The user's own texts.

TRAIN = "\n".join(f"{number} bottles of beer on the wall,\n\n  {number}  bottles" for number in range(300))
DEV = "7 bottles\n<|endoftext|>\nof beer"


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.fixture
def files(tmp_path):
    return {f"{name}_files": [write(tmp_path / name, text)] for name, text in (("train", TRAIN), ("dev", DEV))}


@pytest.mark.slow
def test_rows_must_fit_into_a_batch(tmp_path, files):
    problem = own.generated(CHARACTERS, tmp_path / "data", sequence_length=64, **files)
    hparams = registry.hparams("transformer_lm_tiny").parse("batch_size=60")
    records = Records(problem, str(tmp_path / "data"), "train")
    with pytest.raises(UserError, match=r"batch_size=60: .*languagemodel_own_characters.* 64 ids"):
        records.check_training(hparams)
    whole = records.check_training(hparams.parse("batch_size=64"))
    assert (whole.examples, whole.dropped) == (whole.facts["examples"], 0)
    inspection = pytest.importorskip("t2t_lite.extras.inspection.inspection")
    assert "left out" in "\n".join(inspection.inspect_data(problem, str(tmp_path / "data"), hparams))


def ids(problem, folder, split):
    return list(itertools.chain.from_iterable(targets_of(problem, folder, split)))


def test_a_text_comes_back_and_later_commands_need_the_folder_alone(tmp_path, files):
    own.generated("languagemodel_own", tmp_path / "d", vocab_size=300, sequence_length=20, **files)
    for path in itertools.chain(*files.values()):
        (tmp_path / path).unlink()
    problem = registry.problem("languagemodel_own")
    Records(problem, str(tmp_path / "d"), DatasetSplit.TRAIN).check()
    encoder = problem.get_feature_encoders(str(tmp_path / "d"))["targets"]
    found = ids(problem, tmp_path / "d", DatasetSplit.EVAL)
    border = found.index(1)
    assert [encoder.decode(part) for part in (found[:border], found[border + 1 :])] == ["7 bottles\n", "of beer"]
    assert encoder.vocab_size == 300 and problem.sequence_length == 20 and found[-1] == 1


def test_the_end_of_a_line_that_is_read_in_parts_is_no_border(tmp_path, files):
    line = "x" * 2**16 + "<|endoftext|>\n"
    files["dev_files"] = [write(tmp_path / "long", f"{line}<|endoftext|>\nrest")]
    problem = own.generated(CHARACTERS, tmp_path / "d", sequence_length=512, **files)
    found, text = ids(problem, tmp_path / "d", DatasetSplit.EVAL), ByteTextEncoder()
    assert found == [*text.encode(line), 1, *text.encode("rest"), 1]


def test_subwords_lose_white_space_alone(tmp_path, files):
    files["dev_files"] = files["train_files"]
    problem = own.generated("languagemodel_own", tmp_path, vocab_type="subwords", vocab_size=310, **files)
    encoder = problem.get_feature_encoders(str(tmp_path))["targets"]
    text = encoder.decode([i for i in ids(problem, tmp_path, DatasetSplit.EVAL) if i != 1])
    assert text.split(" ") == TRAIN.split()


def test_a_vocabulary_is_used_again(tmp_path, files):
    first = own.generated("languagemodel_own", tmp_path / "a", vocab_size=300, **files)
    second = own.generated("languagemodel_own", tmp_path / "b", vocab_from=[str(tmp_path / "a")], **files)
    held = registry.problem("languagemodel_own")
    (tmp_path / "c").mkdir()
    held.hold_vocabulary(str(tmp_path / "c"), first.vocabulary_files(str(tmp_path / "a"))[1], sequence_length=64)
    (tmp_path / "c").rename(tmp_path / "moved")
    again = registry.problem("languagemodel_own")
    found = [
        problem.get_feature_encoders(str(tmp_path / folder))["targets"].fingerprint
        for problem, folder in ((first, "a"), (second, "b"), (again, "moved"))
    ]
    assert len(set(found)) == 1 and again.sequence_length == 64
    with pytest.raises(UserError, match="languagemodel_own: missing --train_files"):  # there is no corpus
        again.generate_data(str(tmp_path / "moved"), str(tmp_path))
    with pytest.raises(UserError, match=r"--vocab_size together with --vocab_from"):
        registry.problem("languagemodel_own").configure(vocab_from=[str(tmp_path / "a")], vocab_size=300, **files)


@pytest.mark.parametrize(
    "content, text",
    [
        pytest.param("x", "x", id="one character"),
        pytest.param("ends without a line end", "ends without a line end", id="no line end"),
        pytest.param("a\r\nb\r\n", "a\nb\n", id="CR LF"),
        pytest.param("\ufeffa\u2028b\x00\tc \n", "a\u2028b\x00\tc \n", id="control characters"),
        pytest.param("ä" * 100_000, "ä" * 100_000, id="a long line"),
        pytest.param(" \n\n", " \n\n", id="blank"),
    ],
)
def test_any_text_is_kept_as_it_is(tmp_path, content, text):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(content.encode()))
    problem = own.generated(CHARACTERS, tmp_path / "d", train_files=[str(path)], dev_files=[str(path)])
    assert ids(problem, tmp_path / "d", DatasetSplit.EVAL) == [*ByteTextEncoder().encode(text), 1]
    assert ids(problem, tmp_path / "d", DatasetSplit.TRAIN)


@pytest.mark.parametrize(("name", "warns"), [("a.txt", False), ("a.jsonl.gz", True), ("a.csv", True), ("a.json", True)])
@pytest.mark.parametrize("problem", ["languagemodel_own_characters", "masked_lm_own"])
def test_a_table_is_read_as_a_text_with_a_warning(tmp_path, caplog, problem, name, warns):
    (tmp_path / name).write_text("text")
    registry.problem(problem).configure([str(tmp_path / name)], [str(tmp_path / name)])
    assert (f"{name}: its rows are read as plain text" in caplog.text) == warns
