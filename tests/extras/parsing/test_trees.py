"""Trees from brackets to tokens and back, and from any tokens to a tree over the words of a sentence."""

import gzip
import itertools
import subprocess
import sys

import pytest
from nltk.tree import Tree

from t2t_lite.errors import UserError
from t2t_lite.extras.parsing import trees
from t2t_lite.extras.parsing.trees import ALONE, OTHER_TAG, align, cost, learn_tags
from tests.extras.damaged_files import check_damage

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


def built(tokens, words, phrases=PHRASES, known=None):
    return trees.to_line(trees.build_tree(tokens.split(), words.split(), phrases, known))


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (MRG.encode(), [(CAT, 2), ("(TOP (NP (NNP Kim)))", 11)]),
        (gzip.compress(b"(ROOT (NP (NN a)))(S1 (NP (NN b)))\r\n\r\n(TOP (ROOT (NP (NN c))))"),
         [("(TOP (NP (NN a)))", 1), ("(TOP (NP (NN b)))", 1), ("(TOP (NP (NN c)))", 3)]),
        ("(S\x00(NN a\u2028))".encode(), [("(TOP (S (NN a)))", 1)]),  # control characters are blanks
    ],
    ids=["as published", "compressed", "control"],
)  # fmt: skip
def test_a_treebank_file_is_read_as_parsers_want_it(content, found, tmp_path):
    (tmp_path / "a.mrg").write_bytes(content)
    assert [(trees.to_line(tree), line) for tree, line in trees.read_trees(str(tmp_path / "a.mrg"))] == found


GOOD, FIRST, LAST = "(S (NN a))\n", "(S (NN first))", "(S (NN last))\n"
UNREADABLE = {  # a tree in line 2, the message behind its path
    "no phrase": ("(S (NP ) )", ", line 2: .*no words"), "no word": ("(S)", ", line 2: .*no words"),
    "a trace alone": ("( (S (-NONE- *)))", ", line 2: .*no words"), "nothing": ("()", ", line 2: .*no words"),
    "a bare word": ("(S b (NN c))", ", line 2: .*'b'.* part of speech.*NN b"),
    "two words": ("(S (NN a b))", ", line 2: .*'a'.* part of speech"), "words alone": ("(ROOT b)", ", line 2: .*'b'"),
    "no label": ("(S ((NN a)))", ", line 2: '' .*label"), "a closing label": ("(/S (NN a))", ", line 2: '/S' .*label"),
    "too deep": ("(S " * 200 + "(NN a)" + ")" * 200, ", line 2: .*201 nested.* 200"),
    "other bytes": (b"(S (NN \xe4))", ", line 2: .*UTF-8"),
}  # fmt: skip
DAMAGED = {
    "not closed": (f"{GOOD}(S (NP (NN b)\n(S (NN c))\n", ", line 2: .*not closed.* 2 closing"),
    "not closed at the end": (f"{GOOD}(S (NN a)\n", ", line 2: .*not closed.* 1 closing"),
    "not opened": (f"{GOOD}(S (NN b)))\n", ", line 2: .*closing bracket"),
    "a word before": (f"{GOOD}hello (S (NN b))\n", ", line 2: 'hello' .*outside"),
    "a word behind": (f"{GOOD}(S (NN b)) hello\n", ", line 2: 'hello' .*outside"),
    "no brackets": ("no brackets at all\n", ", line 1: .*'no'"), "blank": ("\n \n", ".*no tree"),
}  # fmt: skip


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_tree_that_cannot_be_read_is_named_or_skipped(kind, tmp_path):
    text, words = UNREADABLE[kind]
    content = f"{FIRST}\n".encode() + (text if isinstance(text, bytes) else text.encode()) + f"\n{LAST}".encode()
    check_damage(lambda path: [*trees.read_trees(path)], tmp_path, content, words)
    told = []
    found = [tree.leaves() for tree, _ in trees.read_trees(str(tmp_path / "a"), told.append)]
    assert found == [["first"], ["last"]] and len(told) == 1 and ", line 2: " in told[0]


@pytest.mark.parametrize("kind", DAMAGED)
def test_damage_is_named(kind, tmp_path):
    check_damage(lambda path: [*trees.read_trees(path, list().append)], tmp_path, *DAMAGED[kind])


def test_a_text_that_is_no_tree_is_refused():
    for text in ("(S (NN a)", "", "a", "(S (NN a)) (S (NN b))"):
        with pytest.raises(UserError, match=r"^here: "):
            trees.parse_tree(text, "here")


def test_trees_may_be_as_deep_as_200_brackets():
    assert trees.parse_tree("(S " * 199 + "(NN a)" + ")" * 199).leaves() == ["a"]


@pytest.mark.parametrize(
    ("label", "kept"),
    [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("ADVP|PRT", "ADVP"), ("-LRB-", "-LRB-"), ("PRP$", "PRP$"), ("=", "=")],
)
def test_labels_lose_their_functions(label, kept):
    assert trees.strip_label(label) == kept


def test_trees_without_an_outer_bracket_and_forests_get_one():
    assert trees.to_line(trees.parse_tree("(NN a)")) == "(TOP (NN a))"
    assert trees.to_line(trees.parse_tree("(ROOT (NP (NN a)) (. .))")) == "(TOP (NP (NN a)) (. .))"


def test_tokens_are_tensor2tensors():
    assert trees.linearize(trees.parse_tree(CAT)) == (CAT_WORDS.split(), CAT_TOKENS.split())


@pytest.mark.parametrize("text", [CAT, "(TOP (NN a))", "(TOP (NP (NN a)) (. .))", "(TOP (S (S (S (NN a)))))"])
def test_there_and_back(text):
    tree = trees.parse_tree(text)
    words, tokens = trees.linearize(tree)
    assert trees.build_tree(tokens, words) == tree


@pytest.mark.parametrize(
    ("tokens", "tree"),
    [
        ("S NP DT NN /NP VP VBZ RB /VP /S", "(TOP (S (NP (DT a) (NN b)) (VP (VBZ c))))"),  # rule 1: a tag too many
        ("S NP DT /NP VP VBZ /VP /S", "(TOP (S (NP (DT a)) (VP (VBZ b)) (NN c)))"),  # rule 1: one too few, all closed
        ("S NP DT NN /NP VP VBZ /S", "(TOP (S (NP (DT a) (NN b)) (VP (VBZ c))))"),  # rule 2: /S closes VP too
        ("S NP DT NN /NP /PP VP VBZ /VP /S", "(TOP (S (NP (DT a) (NN b)) (VP (VBZ c))))"),  # rule 2: no PP is open
        ("S NP NP DT /NP NN VBZ /S", "(TOP (S (NP (NP (DT a)) (NN b) (VBZ c))))"),  # rule 2: the innermost
        ("S NP DT NN /NP VP", "(TOP (S (NP (DT a) (NN b)) (VP (NN c))))"),  # rules 1 and 3: cut off
        ("S NP DT NN VBZ /NP VP /VP /S", "(TOP (S (NP (DT a) (NN b) (VBZ c))))"),  # rule 3: VP is empty
        ("", "(TOP (NN a) (NN b) (NN c))"),
        ("/S /NP", "(TOP (NN a) (NN b) (NN c))"),
        ("S " * 2000, None),
        ("S " * 2000 + "DT " + "/S " * 2000, None),
    ],
)
def test_any_tokens_become_a_tree_over_the_words(tokens, tree):
    found = built(tokens, "a b c")
    assert found == tree or (tree is None and trees.parse_tree(found).leaves() == ["a", "b", "c"])
    assert tree or found.count("(S") == 198, "TOP and the tag are brackets as well"


KNOWN = {"": ["NN"], "the": ["DT"], "a": ["DT"], "cat": ["NN"], "sees": ["VBZ", "NNS"], ".": ["."]}
SEES = "(NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .)"


@pytest.mark.parametrize(
    ("tokens", "tree"),
    [
        # The tag of cat is left out: without known tags VBZ would be cat's and all others one word early.
        ("S NP DT /NP VP VBZ NP DT NN /NP /VP . /S", SEES),
        # A tag too many in the middle, and a first word without one.
        ("S NP DT JJ NN /NP VP VBZ NP DT NN /NP /VP . /S", SEES),
        ("S NP NN /NP VP VBZ NP DT NN /NP /VP . /S", SEES),
        # As many tags as words: the model's own, whatever is known.
        ("S NN NN NN NN NN NN", "(NN the) (NN cat) (NN sees) (NN a) (NN dog) (NN .)"),
    ],
)
def test_known_tags_find_the_words_of_tags(tokens, tree):
    assert built(tokens, "the cat sees a dog .", PHRASES, KNOWN) == f"(TOP (S {tree}))"


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
    text = "(S (NP\u00a0X (CD 10\u00a0000) (NN ans\u202f?)) (. \u2009.))"
    (tmp_path / "a.mrg").write_text(text)
    [(tree, _)] = trees.read_trees(str(tmp_path / "a.mrg"))
    words, tokens = trees.linearize(tree)
    assert words == ["10\u00a0000", "ans\u202f?", "\u2009."]
    assert tokens == ["S", "NP\u00a0X", "CD", "NN", "/NP\u00a0X", ".", "/S"]
    assert trees.escape_words(" ".join(words)) == words
    assert trees.parse_tree(trees.to_line(tree)) == trees.build_tree(tokens, words) == tree


def every_alignment(tags, words):
    if not tags and not words:
        yield []
    if tags and words:
        yield from ([(tags[0], words[0]), *rest] for rest in every_alignment(tags[1:], words[1:]))
    if tags:
        yield from ([(tags[0], None), *rest] for rest in every_alignment(tags[1:], words))
    if words:
        yield from ([(None, words[0]), *rest] for rest in every_alignment(tags, words[1:]))


RIGHT = {"": ["N", "J"], "the": ["D"], "saw": ["V", "N"], "and": ["C"]}


def test_what_is_learned():
    pairs = ["saw N", "saw V", "saw V", "the D", "the D", "dog N", "new J", "x N"]
    learned = learn_tags([tuple(pair.split()) for pair in pairs])
    assert learned == {"": ["N", "J"], "dog": ["N"], "new": ["J"], "saw": ["V", "N"], "the": ["D"], "x": ["N"]}
    assert [*learned] == sorted(learned), "the file does not depend on the order of the trees"
    assert learn_tags([("a", "Z"), ("a", "Y")])["a"] == ["Y", "Z"], "of equally frequent ones the first of the alphabet"


@pytest.mark.parametrize("known", [RIGHT, {}])
@pytest.mark.parametrize("tags", [t for n in range(4) for t in itertools.product("DNV", repeat=n)][::3])
@pytest.mark.parametrize("words", ["", "the", "the dog", "dog saw the", "saw and saw the"])
def test_no_other_alignment_costs_less(tags, words, known):
    words = words.split()
    found = align(list(tags), words, known)
    assert [tag for tag, _ in found if tag is not None] == list(tags)
    assert [word for _, word in found if word is not None] == words
    assert cost(found, known) == min(cost(pairs, known) for pairs in every_alignment(list(tags), words))


def test_the_cost_of_pairs():
    pairs = [("D", "the"), ("N", "dog"), ("J", "saw"), (None, "and"), ("V", None)]
    assert (ALONE, OTHER_TAG) == (1, 1.5)
    assert cost(pairs[:2], RIGHT) == 0  # dog is a word that training does not have: N or J
    assert cost(pairs, RIGHT) == 1.5 + 2 and cost(pairs, {}) == 3 * 1.5 + 2


@pytest.mark.parametrize(
    ("tags", "words", "known", "pairs"),
    [
        # the (D) is left out; V and C could also be had at the price of two other tags
        ("NVC", "the dog saw and", RIGHT, [(None, "the"), ("N", "dog"), ("V", "saw"), ("C", "and")]),
        ("AB", "x y z", {}, [("A", "x"), ("B", "y"), (None, "z")]),
        ("AB", "x", {}, [("A", "x"), ("B", None)]),
    ],
)
def test_what_is_paired(tags, words, known, pairs):
    assert align(list(tags), words.split(), known) == pairs
