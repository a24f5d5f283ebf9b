"""What the phrasebook promises as data: one translation, many pairs, held-out combinations, the same every time."""

import collections
import random
import re
import subprocess
import sys
import time

from t2t_lite import registry
from t2t_lite.problems import phrasebook
from t2t_lite.problems.phrasebook_lexicon import NOUNS, VERBS
from tests.problems.phrasebook_analysis import all_clauses, held_out, lexical_verb, train


def test_an_english_sentence_has_one_translation():
    drawn, generator = {}, phrasebook.Phrasebook(random.Random(3))
    for _ in range(10_000):
        sentence = generator.sentence()
        assert drawn.setdefault(sentence.inputs.lower(), sentence.targets) == sentence.targets


def test_there_are_more_than_a_million_pairs():
    """The chance that two draws agree is at least 1/N for N possible sentences, so N is at least its inverse."""
    generator = phrasebook.Phrasebook(random.Random(4))
    sentences = [sentence.inputs for sentence in (generator.sentence() for _ in range(10_000))]
    long_ones = collections.Counter(sentence for sentence in sentences if len(sentence.split()) >= 8)
    drawn = long_ones.total()
    agreeing = sum(count * (count - 1) // 2 for count in long_ones.values())
    assert drawn > 5000
    assert drawn * (drawn - 1) / 2 / (agreeing + 1) > 1e6


def test_held_out_combinations_never_occur_in_training():
    known = {combination for sentence in train() for combination in sentence.combinations}
    homes = {"eval": set(), "test": set()}
    for split in homes:
        for sentence in held_out(split):
            own = {name for name in sentence.combinations if phrasebook.home_of(name) == split}
            assert own, sentence
            homes[split] |= own
    assert not homes["eval"] & homes["test"]
    assert not known & (homes["eval"] | homes["test"])
    assert not {name for s in held_out("test") for name in s.combinations} & homes["eval"]
    assert len(homes["test"]) > 50


def test_held_out_verbs_and_objects_are_never_together_in_training():
    """The same, read off the German words."""
    together = {
        (lexical_verb(clause), word.text)
        for clause in all_clauses(train())
        for word in clause
        if word.tag.startswith("noun") and word.tag.endswith("acc")
    }
    names = {name for sentence in held_out("test") for name in sentence.combinations if "," not in name}
    pairs = [name.split(" + ") for name in names if phrasebook.home_of(name) == "test"]
    transitive = {verb.de for verb in VERBS["transitive"]}
    pairs = [(pair[0], NOUNS[pair[1]]) for pair in pairs if pair[0] in transitive]
    assert len(pairs) > 20
    for verb, noun in pairs:
        assert not {(verb, noun.de), (verb, noun.de_plural)} & together, (verb, noun)


def test_training_knows_every_word_and_every_frame():
    known = {word.text for sentence in train() for word in sentence.words}
    tested = [word.text for s in held_out("test") for word in s.words if not re.search(r"\d", word.text)]
    unknown = [word for word in tested if word not in known]
    assert len(unknown) < 0.005 * len(tested), unknown  # even in 5,000 of the 100,000 training pairs
    lemmas = collections.Counter(lexical_verb(clause) for clause in all_clauses(train()))
    assert all(lemmas[verb.de] >= 5 for group in VERBS.values() for verb in group)
    frames = collections.Counter(sentence.frame for sentence in train())
    assert frames.keys() >= {sentence.frame for sentence in held_out("test")}
    assert min(frames.values()) > 0.02 * len(train())


def test_the_same_seed_gives_the_same_pairs_in_every_process():
    here = list(phrasebook.generate_pairs(1, 50, "test"))
    assert here == list(phrasebook.generate_pairs(1, 50, "test")) != list(phrasebook.generate_pairs(2, 50, "test"))
    code = "from t2t_lite.problems import phrasebook as p; print(list(p.generate_pairs(1, 50, 'test')))"
    there = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "77"}
    )
    assert there.stdout.strip() == str(here)


def test_sentences_are_generated_fast_enough():
    start = time.process_time()
    pairs = list(phrasebook.generate_pairs(5, 1000, "train"))
    assert time.process_time() - start < 0.6  # 100,000 in a minute
    assert len({pair["inputs"] for pair in pairs}) == 1000


def test_the_problem_is_registered_and_reversible():
    problem = registry.problem("translate_ende_phrasebook")
    assert problem.languages == ("en", "de")
    assert registry.problem("translate_ende_phrasebook_rev").languages == ("de", "en")
    assert problem.is_generate_per_split
    sizes = {split["split"]: split["shards"] for split in problem.dataset_splits}
    assert set(sizes) == set(phrasebook.PAIRS) and sizes["train"] > 1
    samples = problem.generate_samples("", "", "test")
    assert next(samples).keys() == {"inputs", "targets"}
    assert sum(1 for _ in samples) == phrasebook.PAIRS["test"] - 1
