"""What the phrasebook promises as data: one translation, many pairs, held-out combinations, the same every time."""

# Nearest tests of: extras/phrasebook/sentences.py, extras/phrasebook/translate_ende_phrasebook.py

import collections
import functools
import random
import re
import subprocess
import sys

import pytest

from t2t_lite import registry
from t2t_lite.extras.phrasebook import translate_ende_phrasebook as phrasebook
from t2t_lite.extras.phrasebook.grammar import NOUNS, VERBS, nouns
from t2t_lite.extras.phrasebook.sentences import Phrasebook


@functools.cache
def sentences(split, count):
    return list(phrasebook.generate_sentences(7, count, split))


@pytest.mark.slow
def test_an_english_sentence_has_one_translation():
    drawn, generator = {}, Phrasebook(random.Random(3))
    for _ in range(20_000):
        sentence = generator.sentence()
        assert drawn.setdefault(sentence.inputs.lower(), sentence.targets) == sentence.targets


@pytest.mark.slow
def test_there_are_more_than_a_million_pairs():
    """The chance that two draws agree is at least 1/N for N possible sentences, so N is at least its inverse."""
    generator = Phrasebook(random.Random(4))
    drawn = [sentence for sentence in (generator.sentence().inputs for _ in range(10_000)) if sentence.count(" ") > 6]
    agreeing = sum(count * (count - 1) // 2 for count in collections.Counter(drawn).values())
    assert len(drawn) > 4000
    assert len(drawn) * (len(drawn) - 1) / 2 / (agreeing + 1) > 1e6


@pytest.mark.slow
def test_held_out_combinations_never_occur_in_training():
    known = {combination for sentence in sentences("train", 5000) for combination in sentence.combinations}
    homes = {"eval": set(), "test": set()}
    for split in homes:
        for sentence in sentences(split, 400):
            own = {name for name in sentence.combinations if phrasebook.home_of(name) == split}
            assert own, sentence
            homes[split] |= own
    assert not homes["eval"] & homes["test"]
    assert not known & (homes["eval"] | homes["test"])
    assert not {name for s in sentences("test", 400) for name in s.combinations} & homes["eval"]
    assert len(homes["test"]) > 50


@pytest.mark.slow
def test_held_out_verbs_and_objects_are_never_together_in_training():
    """The same, read off the English words of sentences with one clause."""
    known = [set(re.findall(r"\w+", s.inputs.lower())) for s in sentences("train", 5000) if "," not in s.targets]
    verbs = {verb.de: verb for verb in VERBS if verb.group == "transitive" and not verb.preposition + verb.adverb}
    del verbs["putzen"]  # "clean" is sauber, too
    checked = 0
    for name in {name for sentence in sentences("test", 400) for name in sentence.combinations}:
        verb, noun = (table.get(word) for table, word in zip((verbs, NOUNS), name.split(" + ", 1), strict=True))
        if not verb or not noun or noun in nouns("people") or phrasebook.home_of(name) == "train":
            continue
        forms = {verb.en, verb.third, verb.past, verb.participle, verb.ing}
        assert not [words for words in known if words & forms and words & {noun.en, noun.en_plural}], name
        checked += 1
    assert checked > 15


@pytest.mark.long
def test_training_knows_every_word_and_every_verb():
    known, tested = (
        collections.Counter(word for s in sentences(*drawn) for word in re.findall(r"[\w-]+", s.targets.lower()))
        for drawn in (("train", 50_000), ("test", 400))
    )
    assert tested.keys() - known.keys() == set()  # even in half of the 100,000 training pairs
    groups = ("transitive", "dative", "activity", "motion")
    assert all(known[verb.perfect] >= 5 for verb in VERBS if verb.group in groups)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_pairs_in_every_process():
    here, again, other = (list(phrasebook.generate_sentences(seed, 50, "test")) for seed in (1, 1, 2))
    assert here == again != other
    module = "t2t_lite.extras.phrasebook.translate_ende_phrasebook"
    code = f"import {module} as p; print(list(p.generate_sentences(1, 50, 'test')))"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           env={"PYTHONHASHSEED": "77"}, timeout=300)  # fmt: skip
    assert there.stdout.strip() == str(here)


@functools.cache
def drawn_sentences():
    """3000 sentences of all frames, of no split."""
    generator = Phrasebook(random.Random(5))
    return [generator.sentence() for _ in range(3000)]


def test_each_question_word_is_that_of_its_question():
    """Where somebody goes is asked by wohin, where somebody is by wo; the verb says which of both is meant."""
    motions, found = {verb.de for verb in VERBS if verb.group == "motion"}, set()
    for sentence in drawn_sentences():
        verbs = [name.split(" + ")[1] for name in sentence.combinations if name.startswith("wh_question, ")]
        en, de = sentence.inputs.split()[0], sentence.targets.split()[0]
        if verbs and en in ("Why", "When", "Where"):
            found.add((en, de, verbs[0] in motions))
    asked = {(en, de, goes) for en, de in (("Why", "Warum"), ("When", "Wann")) for goes in (True, False)}
    assert found == asked | {("Where", "Wohin", True), ("Where", "Wo", False)}


# What has one translation wherever it stands: question words, conjunctions, adverbs.
SMALL_WORDS = {
    "why": "warum", "when": "wann", "that": "dass", "whether": "ob", "because": "weil", "although": "obwohl",
    "often": "oft", "always": "immer", "never": "nie", "sometimes": "manchmal", "already": "schon",
}  # fmt: skip


def test_each_small_word_is_translated_by_its_own():
    known = set()
    for sentence in drawn_sentences():
        en, de = ({*re.findall(r"\w+", text.lower())} for text in sentence[:2])
        assert {SMALL_WORDS[word] for word in en & SMALL_WORDS.keys()} == de & {*SMALL_WORDS.values()}, sentence
        known |= en
    assert known >= SMALL_WORDS.keys()


def test_a_misspelt_noun_in_a_table_is_an_error():
    assert {noun.en for noun in nouns("kin apple")} > {"apple", "uncle"}
    with pytest.raises(KeyError, match="aple"):
        nouns("kin aple")


@pytest.mark.slow
def test_the_problem_is_registered_and_reversible():
    problem = registry.problem("translate_ende_phrasebook")
    assert problem.languages == ("en", "de")
    assert registry.problem("translate_ende_phrasebook_rev").languages == ("de", "en")
    shards = {"train": 4, "eval": 1, "test": 1}
    assert problem.dataset_splits == [{"split": split, "shards": count} for split, count in shards.items()]
    assert phrasebook.PAIRS == {"train": 100_000, "eval": 1000, "test": 1500} and problem.approx_vocab_size == 2048
    problem.random_seed = 7
    samples = list(problem.generate_samples("", "", "test"))
    assert len({sample["inputs"] for sample in samples}) == len(samples) == 1500
    assert samples[:400] == [{"inputs": s.inputs, "targets": s.targets} for s in sentences("test", 400)]


def test_a_twentieth_of_the_combinations_is_held_out_for_each_split():
    homes = collections.Counter(phrasebook.home_of(f"{verb.de} + {noun}") for verb in VERBS for noun in NOUNS)
    assert [homes[split] / homes.total() for split in ("eval", "test")] == pytest.approx([0.05, 0.05], abs=0.005)
