import gzip
import subprocess
import sys

import pytest
from nltk.tree import Tree

from t2t_lite.extras.parsing import trees

# As in the Penn Treebank's .mrg files: an outer bracket without label, function labels, traces, trees over lines.
MRG = """
( (S
    (NP-SBJ-1 (DT The) (NN cat) )
    (VP (VBZ wants)
      (S
        (NP-SBJ (-NONE- *-1) )
        (VP (TO to)
          (VP (VB sleep) ))))
    (. .) ))

( (NP (NNP Kim)))
"""
CAT = "(TOP (S (NP (DT The) (NN cat)) (VP (VBZ wants) (S (VP (TO to) (VP (VB sleep))))) (. .)))"
CAT_WORDS = "The cat wants to sleep ."
CAT_TOKENS = "S NP DT NN /NP VP VBZ S VP TO VP VB /VP /VP /S /VP . /S"
PHRASES = ("S", "NP", "VP", "PP")


def written(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def read(path):
    return [(trees.to_line(tree), line) for tree, line in trees.read_trees(path)]


def built(tokens, words, phrases=PHRASES):
    return trees.to_line(trees.build_tree(tokens.split(), words.split(), phrases))


def test_a_treebank_file_is_read_as_parsers_want_it(tmp_path):
    assert read(written(tmp_path / "a.mrg", MRG)) == [(CAT, 2), ("(TOP (NP (NNP Kim)))", 11)]


def test_packed_and_several_trees_a_line(tmp_path):
    packed = gzip.compress(b"(ROOT (NP (NN a)))(S1 (NP (NN b)))\r\n\r\n(TOP (ROOT (NP (NN c))))")
    found = [("(TOP (NP (NN a)))", 1), ("(TOP (NP (NN b)))", 1), ("(TOP (NP (NN c)))", 3)]
    assert read(written(tmp_path / "a.gz", packed)) == found


@pytest.mark.parametrize(
    ("label", "kept"),
    [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("ADVP|PRT", "ADVP"), ("-LRB-", "-LRB-"), ("PRP$", "PRP$"), ("=", "=")],
)
def test_labels_lose_their_functions(label, kept):
    assert trees.strip_label(label) == kept


def test_trees_without_an_outer_bracket_and_forests_get_one():
    assert trees.to_line(trees.parse_tree("(NN a)")) == "(TOP (NN a))"
    assert trees.to_line(trees.parse_tree("(ROOT (NP (NN a)) (. .))")) == "(TOP (NP (NN a)) (. .))"


def test_control_characters_are_blanks(tmp_path):
    assert read(written(tmp_path / "a.mrg", "(S\x00(NN a\u2028))"))[0][0] == "(TOP (S (NN a)))"


def test_tokens_are_tensor2tensors():
    assert trees.linearize(trees.parse_tree(CAT)) == (CAT_WORDS.split(), CAT_TOKENS.split())


@pytest.mark.parametrize("text", [CAT, "(TOP (NN a))", "(TOP (NP (NN a)) (. .))", "(TOP (S (S (S (NN a)))))"])
def test_there_and_back(text):
    tree = trees.parse_tree(text)
    words, tokens = trees.linearize(tree)
    assert trees.build_tree(tokens, words) == tree
    assert trees.is_valid(tokens, len(words))
    assert not trees.is_valid(tokens, len(words) + 1)


@pytest.mark.parametrize(
    ("tokens", "tree"),
    [
        ("S NP DT NN /NP VP VBZ RB /VP /S", "(TOP (S (NP (DT a) (NN b)) (VP (VBZ c))))"),  # rule 1: a tag too many
        ("S NP DT /NP VP VBZ /VP /S", "(TOP (S (NP (DT a)) (VP (VBZ b)) (NN c)))"),  # rule 1: one too few, all closed
        ("S NP DT NN /NP VP VBZ /S", "(TOP (S (NP (DT a) (NN b)) (VP (VBZ c))))"),  # rule 2: /S closes VP too
        ("S NP DT NN /NP /PP VP VBZ /VP /S", "(TOP (S (NP (DT a) (NN b)) (VP (VBZ c))))"),  # rule 2: no PP is open
        ("S NP DT NN /NP VP", "(TOP (S (NP (DT a) (NN b)) (VP (NN c))))"),  # rules 1 and 3: cut off
        ("S NP DT NN VBZ /NP VP /VP /S", "(TOP (S (NP (DT a) (NN b) (VBZ c))))"),  # rule 3: VP is empty
        ("", "(TOP (NN a) (NN b) (NN c))"),
        ("/S /NP", "(TOP (NN a) (NN b) (NN c))"),
        ("S " * 2000, None),
        ("S " * 2000 + "DT " + "/S " * 2000, None),
    ],
)
def test_any_tokens_become_a_tree_over_the_words(tokens, tree):
    assert not trees.is_valid(tokens.split(), 3, PHRASES)
    found = built(tokens, "a b c")
    assert found == tree or (tree is None and trees.parse_tree(found).leaves() == ["a", "b", "c"])


KNOWN = {"": ["NN"], "the": ["DT"], "a": ["DT"], "cat": ["NN"], "sees": ["VBZ", "NNS"], ".": ["."]}


@pytest.mark.parametrize(
    ("tokens", "tree"),
    [
        # The tag of cat is left out: without known tags VBZ would be cat's and all others one word early.
        (
            "S NP DT /NP VP VBZ NP DT NN /NP /VP . /S",
            "(NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .)",
        ),
        # A tag too many in the middle, and a first word without one.
        (
            "S NP DT JJ NN /NP VP VBZ NP DT NN /NP /VP . /S",
            "(NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .)",
        ),
        (
            "S NP NN /NP VP VBZ NP DT NN /NP /VP . /S",
            "(NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .)",
        ),
        # As many tags as words: the model's own, whatever is known.
        ("S NN NN NN NN NN NN", "(NN the) (NN cat) (NN sees) (NN a) (NN dog) (NN .)"),
    ],
)
def test_known_tags_find_the_words_of_tags(tokens, tree):
    words = ["the", "cat", "sees", "a", "dog", "."]
    found = trees.to_line(trees.build_tree(tokens.split(), words, PHRASES, KNOWN))
    assert found == f"(TOP (S {tree}))"


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("S NP DT NN /NP VP VBZ /VP /S", 0.0),
        ("S DT VBZ /NP", 1.0),  # cat is left alone; brackets do not count
        ("S DT NN VBZ NN /S", 1.0),
        ("S VBZ NN DT /S", 3.0),  # as many tags as words: two of them are of other words
        ("", 3.0),
    ],
)
def test_misfit_is_of_tags_and_words(tokens, expected):
    known = {"the": ["DT"], "cat": ["NN"], "sleeps": ["VBZ"], "": ["NN"]}
    assert trees.misfit(tokens.split(), ["the", "cat", "sleeps"], PHRASES, known) == expected


def test_an_empty_phrase_is_not_valid():
    assert not trees.is_valid(["S", "NP", "/NP", "NN", "/S"], 1)


def test_brackets_in_words_are_escaped():
    assert trees.escape_words("a (b)  c)\n") == ["a", "-LRB-b-RRB-", "c-RRB-"]
    assert Tree.fromstring(built("NP NN NN /NP", " ".join(trees.escape_words("( )")))).leaves() == ["-LRB-", "-RRB-"]


def test_without_nltk_it_says_what_to_install(tmp_path):
    (tmp_path / "a.trees").write_text("(S (NN a))\n")
    program = (
        "import sys; sys.modules['nltk'] = sys.modules['nltk.tree'] = None\n"
        "from t2t_lite.parsing import evalb, trees\n"
        "path, skipped = sys.argv[1], []\n"
        "for read in (lambda: trees.parse_tree('(S (NN a))'), lambda: [*trees.read_trees(path)],\n"
        "             lambda: [*trees.read_trees(path, skipped.append)], lambda: evalb.read_predictions(path)):\n"
        "    try:\n        read()\n"
        "    except ValueError as error:\n        print(error)\n"
        "assert not skipped"
    )
    call = [sys.executable, "-c", program, tmp_path / "a.trees"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120)
    expected = "reading trees needs nltk, which is not installed. Run: pip install 't2t_lite[parsing]'"  # of no file
    assert done.stdout.splitlines() == [expected] * 4, done.stderr


def test_a_word_may_have_a_no_break_space(tmp_path):
    """French treebanks have them in numbers; nltk would end the word there."""
    text = "(S (NP (CD 10\u00a0000) (NN ans\u202f?)) (. \u2009.))"
    (tmp_path / "a.mrg").write_text(text)
    [(tree, _)] = trees.read_trees(str(tmp_path / "a.mrg"))
    words, tokens = trees.linearize(tree)
    assert words == ["10\u00a0000", "ans\u202f?", "\u2009."] and tokens == ["S", "NP", "CD", "NN", "/NP", ".", "/S"]
    assert trees.escape_words(" ".join(words)) == words
    assert trees.parse_tree(trees.to_line(tree)) == trees.build_tree(tokens, words) == tree
