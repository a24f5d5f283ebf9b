"""Translation of the user's own corpora: one or several, by weights, through filters, and with pairs held out."""

import collections
import csv
import functools
import json
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.text import subwords
from tests.data import corpus
from tests.data.stored import decoded
from tests.problems import own

generated = functools.partial(own.generated, "translate_own")
configured = functools.partial(own.configured, "translate_own")
TRAIN, DEV, TEST = (corpus.sentence_pairs(count, seed) for seed, count in enumerate((200, 30, 20)))


@pytest.fixture
def files(tmp_path):
    """The three corpora on disk, as arguments of `configure`."""
    named = (("train_files", "train", TRAIN), ("dev_files", "dev", DEV), ("test_files", "test", TEST))
    return {flag: corpus.write_corpus(tmp_path, name, pairs).split(",") for flag, name, pairs in named}


def test_later_commands_need_the_data_folder_alone(tmp_path, files):
    generated(tmp_path / "d", vocab_size=320, **files)
    for path in tmp_path.glob("*.en"):
        path.unlink()
    problem = registry.problem("translate_own")
    assert problem.feature_encoders(str(tmp_path / "d"))["inputs"].vocab_size == 320
    assert problem.languages == ("en", "de")
    assert problem.eval_decode_metric == "bleu"
    for split, pairs in ((DatasetSplit.TRAIN, TRAIN), (DatasetSplit.EVAL, DEV), (DatasetSplit.TEST, TEST)):
        assert sorted(decoded(problem, tmp_path / "d", split)) == sorted(pairs)
    reversed_problem = registry.problem("translate_own_rev")
    Records(reversed_problem, str(tmp_path / "d"), DatasetSplit.TRAIN).check()
    assert reversed_problem.languages == ("de", "en")


def test_columns_and_fields_of_tables_are_chosen(tmp_path, files):
    with open(tmp_path / "a.csv", "w", newline="") as file:
        csv.writer(file).writerows([("de", "en"), *(pair[::-1] for pair in TRAIN)])
    rows = ({"id": at, "translation": {"en": pair[0], "de": pair[1]}} for at, pair in enumerate(TRAIN))
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name, options in (
        ("a.csv", {"columns": ["en", "de"]}), ("a.jsonl", {"fields": ["translation.en", "translation.de"]})
    ):  # fmt: skip
        paths = [str(tmp_path / name)]
        problem = configured(train_files=paths, dev_files=files["dev_files"], languages=["en", "de"], **options)
        assert samples(problem) == TRAIN, name


def test_without_a_size_the_corpus_determines_the_vocabulary(tmp_path, files):
    problem = generated(tmp_path / "d", **files)
    texts = [text for pair in TRAIN for text in pair]
    words = {word for text in texts for word in text.split()}
    encoder = problem.feature_encoders(str(tmp_path / "d"))["inputs"]
    assert encoder.vocab_size == 256 + 3 + len({*"".join(words), "\u2581"}) + len(words) // 4
    assert problem.feature_encoders(str(tmp_path / "d"))["targets"].fingerprint == encoder.fingerprint
    # The same request again, and the folder alone, find what is there.
    for again in (generated(tmp_path / "d", **files), registry.problem("translate_own")):
        assert again.feature_encoders(str(tmp_path / "d"))["inputs"].fingerprint == encoder.fingerprint
    # A vocabulary of the targets' own has the size that was typed.
    two = generated(tmp_path / "two", target_vocab_size=320, **files).feature_encoders(str(tmp_path / "two"))
    assert two["inputs"].vocab_size < encoder.vocab_size < two["targets"].vocab_size == 320


@pytest.mark.parametrize("ending", ["zh", "zh-CN", "zh_Hans", "zh-Hant-TW", "zho_Hant"])
def test_languages_are_codes_with_subtags(tmp_path, ending):
    files = corpus.write_corpus(tmp_path, "a", [("a", "b")], ("en", ending)).split(",")
    assert configured(train_files=files, filters=["wrong_script"]).languages == ("en", ending)


def test_a_third_language_is_warned_of(tmp_path, caplog):
    for name in ("a.en", "a.de", "b.en", "b.fr", "c.src", "c.ref", "d.en-US", "d.de"):
        (tmp_path / name).write_text(f"{name}\n")
    train = [str(tmp_path / name) for name in ("a.en", "a.de")]
    for dev, warned in (("b.en b.fr", True), ("c.src c.ref", False), ("d.en-US d.de", False), ("a.en a.de", False)):
        caplog.clear()
        configured(train_files=train, dev_files=[str(tmp_path / name) for name in dev.split()])
        assert ("has the extension .fr, but the language is de" in caplog.text) == warned == bool(caplog.text)


def test_no_configuration_and_no_problem_json(tmp_path):
    with pytest.raises(UserError, match=r"problem.json: no such file. .*t2t-datagen --problem=translate_own"):
        registry.problem("translate_own").feature_encoders(str(tmp_path))
    with pytest.raises(UserError, match="no corpus yet"):
        _ = registry.problem("translate_own").dataset_splits
    config = {"languages": ["en", "de"], "vocab_size": 320, "files": {}, "later": None, "other": ["x"]}
    (tmp_path / "problem.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"problem\.json: unknown setting 'other'\."):
        registry.problem("translate_own").read_config(str(tmp_path))


def test_vocabularies_are_held_for_a_model_that_was_trained_elsewhere(tmp_path):
    for side, size in ((0, 300), (1, 310)):
        subwords.train_sentencepiece([pair[side] for pair in TRAIN], str(tmp_path / f"spm{side}"), size)
    models = [(tmp_path / f"spm{side}.model").read_bytes() for side in (0, 1)]
    for name, both, sizes in (("two", models, [300, 310]), ("one", models[:1] * 2, [300, 300])):
        (tmp_path / name).mkdir()
        vocabularies = dict(zip(("inputs", "targets"), both, strict=True))
        registry.problem("translate_own").hold_vocabularies(str(tmp_path / name), ["sv", "fi"], vocabularies, ".model")
        (tmp_path / name).rename(tmp_path / f"moved-{name}")
        problem = registry.problem("translate_own")
        encoders = problem.get_feature_encoders(str(tmp_path / f"moved-{name}"))
        assert [encoders[side].vocab_size for side in ("inputs", "targets")] == sizes
        assert problem.languages == ("sv", "fi") and problem.config["format"] == 2
        assert not list((tmp_path / f"moved-{name}").glob("*puts.model"))
    with pytest.raises(UserError, match="--languages=fi,fi"):
        registry.problem("translate_own").hold_vocabularies(str(tmp_path), ["fi", "fi"], vocabularies, ".model")


def test_two_sides_with_the_same_text_are_warned_of(tmp_path, files, caplog):
    same = [str(tmp_path / name) for name in ("same.en", "same.de")]
    for path in same:
        pathlib.Path(path).write_bytes(pathlib.Path(files["dev_files"][0]).read_bytes())
    generated(tmp_path / "d", vocab_size=320, **files | {"dev_files": [*files["dev_files"], *same]})
    (warning,) = [record.getMessage() for record in caplog.records if "same text" in record.getMessage()]
    assert "--dev_files" in warning and all(path in warning for path in same)


# Several corpora.

NOISE = [
    ("", "leer"),
    ("the child", "the child"),
    ("дом", "das Haus"),
    ("no", "das ist viel zu lang"),
    ("bread " * 200, "Brot " * 200),
]


def distinct(count, seed=0):
    """Returns `count` different pairs."""
    return list(dict.fromkeys(corpus.sentence_pairs(2 * count, seed)))[:count]


def written(tmp_path, name, pairs):
    return corpus.write_corpus(tmp_path, name, pairs).split(",")


def manifest_of(folder):
    return json.loads((folder / "translate_own-manifest.json").read_text())


def samples(problem, split=DatasetSplit.TRAIN, data_dir=""):
    return [(pair["inputs"], pair["targets"]) for pair in problem.generate_samples(str(data_dir), "", split)]


def test_several_corpora_are_read_one_after_the_other(tmp_path):
    one, two, three, dev = (distinct(20, seed) for seed in range(4))
    (tmp_path / "three.tsv").write_text("".join(f"{inputs}\t{targets}\n" for inputs, targets in three))
    train = [*written(tmp_path, "one", one), str(tmp_path / "three.tsv"), *written(tmp_path, "two", two)]
    problem = configured(train_files=train, dev_files=[*written(tmp_path, "dev", dev), str(tmp_path / "three.tsv")])
    assert samples(problem) == one + three + two
    assert samples(problem, DatasetSplit.EVAL) == dev + three
    assert problem.language_pair == ("en", "de")


def test_weights_say_how_often_a_pair_comes(tmp_path):
    often, rare, once = (distinct(1000, seed) for seed in range(3))
    files = written(tmp_path, "a", often) + written(tmp_path, "b", rare) + written(tmp_path, "c", once)
    problem = configured(train_files=files, dev_files=files[:2], corpus_weights=["2.5", "0.3", "1"])
    count = collections.Counter(samples(problem))
    often, rare, once = set(often), set(rare), set(once)
    only = {"often": often - rare - once, "rare": rare - often - once, "once": once - often - rare}
    times = {name: collections.Counter(count[pair] for pair in pairs) for name, pairs in only.items()}
    assert set(times["often"]) == {2, 3}
    assert abs(times["often"][3] - times["often"].total() / 2) < 80  # 5 standard deviations
    assert set(times["rare"]) == {0, 1}
    assert abs(times["rare"][1] - 0.3 * times["rare"].total()) < 75
    assert set(times["once"]) == {1}
    assert samples(problem) == samples(problem)
    assert len(samples(problem, DatasetSplit.EVAL)) == 1000
    half_as_many = configured(train_files=files[:2], dev_files=files[:2], corpus_weights=[0.5])
    assert set(samples(half_as_many)) < often
    # Each corpus draws by itself: of the same pairs in two of them, other halves stay.
    halves = configured(train_files=files[:2] * 2, dev_files=files[:2], corpus_weights=[0.5, 0.5])
    assert set(collections.Counter(samples(halves)).values()) == {1, 2}
    same = configured(train_files=files, dev_files=files[:2], corpus_weights=["1"] * 3)
    assert same.config["corpus_weights"] is None


def test_the_number_of_shards_follows_the_weights(tmp_path):
    small, large = written(tmp_path, "a", distinct(5)), written(tmp_path, "b", [("a " * 10**6, "b " * 10**6)] * 2)
    for weight, shards in ((0.1, 1), (1, 1), (10, 5)):
        problem = configured(train_files=small + large, dev_files=small, corpus_weights=[1, weight])
        assert problem.dataset_splits[0]["shards"] == shards


def test_filters_report_what_they_remove_from_training_alone(tmp_path):
    good = distinct(200)
    files = {
        "train_files": written(tmp_path, "train", good + NOISE + good[:7]),
        "dev_files": written(tmp_path, "dev", NOISE + good[:3] * 2),
    }
    problem = generated(tmp_path / "d", vocab_size=320, filters=["all"], **files)
    splits = manifest_of(tmp_path / "d")["splits"]
    assert splits["train"]["removed"] == {
        "copied": 1, "duplicate": 7, "empty": 1, "length_ratio": 1, "mojibake": 0, "too_long": 1, "wrong_script": 1,
    }  # fmt: skip
    assert sorted(decoded(problem, tmp_path / "d", DatasetSplit.TRAIN)) == sorted(good)
    assert splits["eval"]["removed"] == {"empty": 1}
    assert splits["eval"]["examples"] == len(NOISE) - 1 + 6
    assert not any(
        "ж" <= piece <= "я" for piece in problem.feature_encoders(str(tmp_path / "d"))["inputs"].pieces(range(320))
    )
    off = generated(tmp_path / "off", vocab_size=320, **files)
    assert manifest_of(tmp_path / "off")["splits"]["train"]["removed"] == {"empty": 1}
    assert len(decoded(off, tmp_path / "off", DatasetSplit.TRAIN)) == 200 + 7 + len(NOISE) - 1


def test_duplicates_are_found_across_corpora_and_copies_by_weight_stay(tmp_path):
    files = written(tmp_path, "a", distinct(50)) + written(tmp_path, "b", distinct(50) + distinct(10, 9))
    problem = configured(train_files=files, dev_files=files, filters=["duplicate"], corpus_weights=[3, 1])
    count = collections.Counter(samples(problem))
    assert all(count[pair] == 3 for pair in distinct(50))
    assert problem.removed["duplicate"] >= 50


@pytest.mark.slow
def test_held_out_pairs_share_no_sentence_with_training(tmp_path, caplog):
    def normal(text):
        return re.sub(r"\W", "", text.casefold())

    pairs = [(f"{inputs}!", targets) for inputs, targets in distinct(1000)]
    pairs += [(inputs.upper(), f"{targets}.") for inputs, targets in pairs[:500]] + pairs[:300]
    files = written(tmp_path, "train", pairs)
    caplog.set_level("INFO", "t2t_lite")
    problem = generated(tmp_path / "d", train_files=files, vocab_size=330, held_out=50, corpus_weights=[2])
    train, dev = (decoded(problem, tmp_path / "d", split) for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL))
    assert {normal(inputs) for inputs, _ in train}.isdisjoint(normal(inputs) for inputs, _ in dev)
    assert len(dev) == len(set(dev))
    assert abs(len(dev) - 50) <= 1
    assert set(train) | set(dev) == set(pairs)
    assert len(train) == 2 * sum(pair not in set(dev) for pair in pairs)
    assert f"{len(dev)} pairs of the training corpora are held out for evaluation" in caplog.text
    splits = manifest_of(tmp_path / "d")["splits"]
    assert splits["train"]["removed"] == {}
    assert splits["eval"]["removed"] == {"duplicate": sum(pair in set(dev) for pair in pairs) - len(dev)}
    again = generated(tmp_path / "again", train_files=files, vocab_size=330, held_out=50, corpus_weights=[2])
    assert decoded(again, tmp_path / "again", DatasetSplit.EVAL) == dev
    for path in (tmp_path / "d").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_a_bad_line_is_counted_once_though_two_splits_read_it(tmp_path):
    files = written(tmp_path, "train", distinct(300))
    with open(files[0], "ab") as inputs, open(files[1], "ab") as targets:
        inputs.write(b"gr\xf6\n")
        targets.write(b"big\n")
    problem = configured(train_files=files, vocab_size=330, held_out=20)
    problem.skip_bad_lines = True
    problem.generate_data(str(tmp_path / "d"), "")
    assert own.removed_of(problem, tmp_path / "d") == {"bad lines": 1}
    assert "bad lines" not in own.removed_of(problem, tmp_path / "d", "eval")


def test_without_dev_files_a_tenth_is_held_out_at_most(tmp_path):
    files = written(tmp_path, "train", distinct(300) + NOISE)
    problem = configured(train_files=files, filters=["all"])
    assert [split["split"] for split in problem.dataset_splits] == ["train", "eval"]
    dev, train = (samples(problem, split) for split in (DatasetSplit.EVAL, DatasetSplit.TRAIN))
    assert abs(len(dev) - 30) <= 2  # `distinct` has some sentences with two translations of "house"
    assert sorted(train + dev) == sorted(distinct(300))


def test_nothing_would_be_left(tmp_path):
    problem = configured(train_files=written(tmp_path, "train", [("Yes.", "Ja."), ("yes", "jawohl")] * 50))
    with pytest.raises(UserError, match=r"no pair for training.* 2 different pairs"):
        problem.generate_data(str(tmp_path / "d"), str(tmp_path))
    assert not (tmp_path / "d").exists()


def test_all_is_kept_in_problem_json(tmp_path):
    train = written(tmp_path, "a", distinct(300)) + written(tmp_path, "b", distinct(100, 5))
    asked = {
        "train_files": train,
        "corpus_weights": ["1", "0.5"],
        "filters": ["all", "length_ratio=4"],
        "held_out": 20,
        "user_defined_symbols": ["<2de>", "<2en>"],
        "max_samples_for_vocab": 250,
        "vocab_size": 330,
    }
    generated(tmp_path / "d", **asked)
    again = registry.problem("translate_own")
    again.generate_data(str(tmp_path / "d"), "")  # the same request: nothing to do
    expected = configured(**asked)
    settings = again.generation_settings()
    assert {len(facts.pop("sha256")) for facts in settings["train_files"]} == {64}  # read when it was generated
    assert settings == expected.generation_settings()
    assert samples(again, data_dir=tmp_path / "d") == samples(expected)
    encoder = again.feature_encoders(str(tmp_path / "d"))["targets"]
    assert encoder.pieces(encoder.encode("das<2de>Haus")).count("<2de>") == 1
