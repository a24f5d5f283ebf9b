"""Sentences and trees as records, outputs as trees, the user's own treebank and the Penn Treebank."""

import json
import os
import shutil

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import MissingFile, UserError
from t2t_lite.extras.parsing.trees import build_tree, linearize, parse_tree, to_line
from tests.data.stored import decoded
from tests.extras import own_problems
from tests.problems import own

NOUNS, VERBS = ("cat", "dog", "bird", "house", "tree"), ("sees", "wants", "finds", "likes")


def sentences(count, begin=0):
    """Bracketed trees over three lines each, with function labels and a trace, all different."""
    for i in range(begin, begin + count):
        subject, verb, thing = NOUNS[i % 5], VERBS[i // 5 % 4], NOUNS[i // 20 % 5]
        yield (
            f"( (S\n  (NP-SBJ-1 (DT the) (NN {subject}))\n  (VP (VBZ {verb})"
            f" (NP (DT a) (NN {thing}{i}) (SBAR (-NONE- *T*-1)))) (. .)))\n"
        )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files of trees, as arguments of `configure`; the test file has a phrase that training lacks."""
    folder = tmp_path_factory.mktemp("trees")
    texts = {
        "train_files": "".join(sentences(60)),
        "dev_files": "".join(sentences(5, 60)),
        "test_files": "(TOP (FRAG (INTJ (UH Oh)) (. !)))\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.mrg").write_text(text)
    return {name: [str(folder / f"{name}.mrg")] for name in texts}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory, files):
    """The folder of data that were generated from these files, which are gone."""
    folder = tmp_path_factory.mktemp("data")
    moved = {name: [str(shutil.copy(path, folder / f"{name}.mrg"))] for name, (path,) in files.items()}
    own.generated("parsing_english_own", folder / "d", vocab_size=350, **moved)
    for (path,) in moved.values():
        os.remove(path)
    return folder / "d"


@pytest.fixture(scope="module")
def problem(data_dir):
    """The problem, as a later command finds it in its data folder."""
    problem = registry.problem("parsing_english_own")
    problem.read_config(str(data_dir))
    return problem


@pytest.fixture(scope="module")
def encoders(problem, data_dir):
    return problem.get_feature_encoders(str(data_dir))


def test_records_hold_words_and_tokens(problem, data_dir):
    expected = [linearize(parse_tree(text)) for text in sentences(60)]
    found = decoded(problem, data_dir, DatasetSplit.TRAIN)
    assert sorted(found) == sorted((" ".join(words), " ".join(tokens)) for words, tokens in expected)
    assert ("the cat sees a cat0 .", "S NP DT NN /NP VP VBZ NP DT NN /NP /VP . /S") in found
    # Labels that training does not have; the tag . it has.
    assert list(decoded(problem, data_dir, DatasetSplit.TEST)) == [("Oh !", "<unk> <unk> <unk> <unk> . <unk>")]


def test_two_vocabularies(encoders, data_dir):
    assert encoders["inputs"].vocab_size == 350
    tokens = ["<pad>", "<EOS>", "<unk>", ".", "/NP", "/S", "/VP", "DT", "NN", "NP", "S", "VBZ", "VP"]
    assert encoders["targets"].pieces(range(2, encoders["targets"].vocab_size)) == tokens[2:]
    known = json.loads((data_dir / "vocab.parsing_english_own.tags.json").read_text())
    assert (known["sees"], known["cat"], known[""]) == (["VBZ"], ["NN"], ["NN"])
    assert (data_dir / "vocab.parsing_english_own.targets.tokens").read_text().splitlines() == tokens
    manifest = json.loads((data_dir / "parsing_english_own-manifest.json").read_text())
    assert manifest["vocabulary"]["targets"]["size"] == len(tokens)


def test_later_commands_need_the_data_folder_alone(problem, data_dir, tmp_path):
    Records(problem, str(data_dir), DatasetSplit.TRAIN).check()
    assert problem.approx_vocab_size == 350
    assert {split["split"] for split in problem.dataset_splits} == {"train", "eval", "test"}
    problem.generate_data(str(data_dir), str(tmp_path))  # finished: nothing to do
    assert problem.learned_files(str(data_dir)) == [
        str(data_dir / f"vocab.parsing_english_own.{name}")
        for name in ("inputs.350.model", "inputs.350.vocab", "targets.tokens", "tags.json")
    ]


def test_the_files_of_a_model_serve_elsewhere(problem, encoders, data_dir, tmp_path):
    for path in problem.vocabulary_files(str(data_dir)):
        shutil.copy(path, tmp_path)
    elsewhere = registry.problem("parsing_english_own").get_feature_encoders(str(tmp_path))
    for side, encoder in encoders.items():
        assert elsewhere[side].fingerprint == encoder.fingerprint


def test_a_label_of_both_a_word_and_a_phrase_is_refused(files, tmp_path):
    # One such tree would turn every NN of the corpus into a phrase.
    path = tmp_path / "train.mrg"
    path.write_text("".join(sentences(60)) + "(S (NP (NN (NN dog))) (VP (VBZ sleeps)))\n")
    with pytest.raises(UserError, match=r"NN is a part of speech, as in \(NN cat\), and also a phrase"):
        own.generated("parsing_english_own", tmp_path / "d", vocab_size=350, **{**files, "train_files": [str(path)]})
    assert not [*(tmp_path / "d").glob("vocab*")]


def test_files_are_read_as_0_1_0_wrote_them(data_dir, tmp_path):
    """One file per split instead of a list."""
    config = json.loads((data_dir / "parsing_english_own.json").read_text())
    older = {split: described for split, (described,) in config["files"].items()}
    (tmp_path / "parsing_english_own.json").write_text(json.dumps({**config, "files": older}))
    assert registry.problem("parsing_english_own").read_config(str(tmp_path)) == config


def test_another_request_is_refused(data_dir):
    problem = registry.problem("parsing_english_own")
    problem.remember({**problem.read_config(str(data_dir)), "vocab_size": 340})
    with pytest.raises(UserError, match=r"vocab_size = 350,.* vocab_size = 340"):
        problem.generate_data(str(data_dir), "")


def test_output_is_a_tree_over_the_words_of_the_input(problem, encoders):
    tree = "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .)))"
    words, tokens = linearize(parse_tree(tree))
    assert problem.output_text(" ".join(words), " ".join(tokens), encoders) == tree
    # Cut off after VP: what opens a phrase is known from the vocabulary, though nothing here closes one.
    assert problem.output_text("the (cat)", "S NP DT NN VP", encoders) == "(TOP (S (NP (DT the) (NN -LRB-cat-RRB-))))"
    assert problem.output_text("oh", "S <unk>", encoders) == "(TOP (S (NN oh)))"
    assert problem.input_text(" the \t(cat) ") == "the -LRB-cat-RRB-"
    assert to_line(build_tree(tokens, words)) == tree


def test_the_output_whose_tags_fit_the_words_is_chosen(problem, encoders):
    outputs = [
        "S NP DT NN /NP . /S",  # leaves out the verb
        "S NP DT NN VP VBZ . /S",  # fits, but is not a tree
        "S NP DT NN /NP VP VBZ /VP . /S",  # fits as well, and comes after it
        "S NP NN DT /NP VP VBZ /VP . /S",
    ]
    assert problem.chooses_output
    assert problem.choose_output("the cat sees .", outputs, encoders) == 1
    assert problem.choose_output("the cat sees .", outputs[2:], encoders) == 0
    assert problem.choose_output("the cat .", outputs, encoders) == 0
    assert problem.choose_output("oh", [""], encoders) == 0


def test_reversed_it_writes_words(data_dir):
    problem = registry.problem("parsing_english_own_rev")
    encoders = problem.get_feature_encoders(str(data_dir))
    assert encoders["targets"].vocab_size == 350
    assert problem.output_text("S NN /S", "the cat", encoders) == "the cat"
    assert problem.input_text("S  NN") == "S  NN"
    assert problem.eval_decode_metric == "exact_sequence_accuracy"
    assert not problem.chooses_output


def test_the_papers_search_is_the_default():
    for name in ("parsing_english_own", "parsing_english_ptb8k", "parsing_english_ptb16k"):
        assert registry.problem(name).decode_defaults == {"beam_size": 21, "alpha": 0.3, "extra_length": 300}


def test_without_data_it_says_how_to_make_them(tmp_path):
    with pytest.raises(UserError, match=r"own\.json.*t2t-datagen --problem=parsing_english_own --train_files"):
        registry.problem("parsing_english_own").feature_encoders(str(tmp_path))
    with pytest.raises(MissingFile, match=r"vocab\..*ptb8k.*t2t-datagen --problem=parsing_english_ptb8k"):
        registry.problem("parsing_english_ptb8k").feature_encoders(str(tmp_path))


@pytest.mark.parametrize("layout", ["", "wsj", "parsed/mrg/wsj"])
def test_sections_of_the_penn_treebank(tmp_path, layout):
    # Each section says its number; 00, 01 and 24 belong to no split.
    for section in range(25):
        folder = tmp_path / layout / f"{section:02d}"
        folder.mkdir(parents=True)
        for part in (1, 0):
            text = f"( (S (NP-SBJ (CD {section}) (CD {part})) (VP (VBZ is))) )\n"
            (folder / f"wsj_{section:02d}{part:02d}.mrg").write_text(text)
        (folder / "readme").write_text("not a tree")
    problem = registry.problem("parsing_english_ptb8k")
    found = {
        split: [tree.leaves()[:2] for tree in problem.generate_trees("", str(tmp_path), split)]
        for split in ("train", "eval", "test")
    }
    assert found["train"] == [[str(section), part] for section in range(2, 22) for part in "01"]
    assert found["eval"] == [["22", "0"], ["22", "1"]]
    assert found["test"] == [["23", "0"], ["23", "1"]]


def test_without_the_penn_treebank_the_layout_is_said(tmp_path):
    with pytest.raises(UserError) as caught:
        registry.problem("parsing_english_ptb16k").generate_data(str(tmp_path / "d"), str(tmp_path))
    for word in (f"--tmp_dir={tmp_path}", "section 02", "licensed", "wsj/02/wsj_0200.mrg"):
        assert word in str(caught.value)
    assert registry.problem("parsing_english_ptb16k").approx_vocab_size == 2**14
    assert registry.problem("parsing_english_ptb8k").approx_vocab_size == 2**13


MISTAKES = [
    ({"train_files": []}, "missing --train_files"),
    ({"dev_files": []}, "missing --dev_files"),
    ({"dev_files": ["."]}, "is a folder"),
    ({"train_files": ["a", "b"]}, "--train_files=a,b: 2 files"),
    ({"test_files": ["none.mrg"]}, "--test_files=none.mrg: no such file"),
    ({"vocab_size": 100}, "--vocab_size=100: "),
]


def test_mistakes_in_flags_are_named_before_anything_is_read(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own_problems.check_mistakes("parsing_english_own", files, MISTAKES)
    with pytest.raises(TypeError, match="vocab_from"):
        registry.problem("parsing_english_own").configure(vocab_from=["a.model"])


@pytest.mark.parametrize(
    ("problem", "flag"), [("parsing_english_own", "--languages=en,de"), ("translate_ende_wmt32k", "--vocab_size=400")]
)
def test_flags_of_own_files_go_where_they_mean_something(problem, flag, call_command, assert_user_error):
    result = call_command("t2t-datagen", "--data_dir=d", f"--problem={problem}", flag)
    assert_user_error(result, flag.split("=")[0], problem)


def test_a_damaged_file_is_named(tmp_path):
    damaged = {"dev": "".join(sentences(5)) + "(S (NN a)\n"}
    own_problems.check_damaged("parsing_english_own", "".join(sentences(60)), damaged, "dev, line 16", tmp_path)


def test_bad_lines_are_left_out(tmp_path):
    good = "".join(f"(S (NP (DT the{n}) (NN cat{n * n})) (VP (VBZ sleeps{n % 7})))\n" for n in range(60))
    bad = b"(S (NN b\xff))\n(S (NP word x))\n"
    own_problems.check_bad_lines("parsing_english_own", good.encode() + bad, 2, tmp_path)
