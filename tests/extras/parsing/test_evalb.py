"""Brackets counted by hand, as evalb with COLLINS.prm counts them; and t2t-evalb, which reports them."""

# Nearest tests of: extras/parsing/t2t_evalb.py

import gzip
import re

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.parsing.evalb import bracketing_f1, read_predictions, score_tree, score_trees
from t2t_lite.extras.parsing.trees import parse_tree

GOLD = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .)))"
KIM, OUTER = "(S (NP (NN a)) (NP (NN b)))", "(S (TOP (NP (NN a))) (NP (NN b)))"
INSIDE, OUTSIDE = "(S (NP (NNP Kim) (, ,)) (VP (VBZ sleeps)) (. !))", "(S (NP (NNP Kim)) (, ,) (VP (VBZ sleeps) (. !)))"
QUOTED = "(S (`` ``) (NP (NNP Kim)) ('' '') (: ;) (-LRB- -LRB-))"
TRACE = "( (S (NP-SBJ-1 (NNP Kim)) (VP (VBZ sleeps) (SBAR (NP (-NONE- *T*-1))))))"
TWICE, THRICE = "(S (NP (NP (NN a))))", "(S (NP (NP (NP (NN a)))))"
# Gold tree, predicted tree, (matched, gold, predicted), other counts and percentages of the result.
CASES = {
    # S 0-6, NP 0-2, VP 2-6, PP 3-6, NP 4-6: five brackets (the full stop is no word), six words.
    "equal": (GOLD, GOLD, (5, 5, 5), {"precision": 100, "recall": 100, "f1": 100, "complete_match": 100, "words": 6,
                                      "tagging_accuracy": 100, "unmatched_punctuation": 0}),
    # VP is 2-3: 4 of 5 match on both sides, F1 = 2·4/10. Tags: on is RP, 5 of 6 are right.
    "attached elsewhere": (
        GOLD, "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (PP (RP on) (NP (DT the) (NN mat))) (. .)))", (4, 5, 5),
        {"f1": 80, "complete_match": 0, "tagging_accuracy": 100 * 5 / 6}),
    # S 0-6 and NP 0-2 match: precision 2/2, recall 2/5, F1 = 2·2/(5 + 2).
    "flat": (GOLD, "(TOP (S (NP (DT The) (NN cat)) (VBD sat) (IN on) (DT the) (NN mat) (. .)))", (2, 5, 2),
             {"precision": 100, "recall": 40, "f1": 400 / 7}),
    # The same spans, NP 0-2 called ADJP and PP 3-6 called SBAR: 3 of 5.
    "labels": (GOLD, GOLD.replace("(S (NP (DT The)", "(S (ADJP (DT The)").replace("(PP", "(SBAR"), (3, 5, 5), {}),
    # The comma inside of NP or outside: NP is 0-1 and S 0-2 in both.
    "a comma": (INSIDE, OUTSIDE, (3, 3, 3), {"complete": 1}),
    # `` and '' are no words either; -LRB- is one.
    "quotes": (QUOTED, QUOTED, (2, 2, 2), {"words": 2}),
    "a phrase of punctuation alone": ("(S (NP (NN a)) (. .))", "(S (NP (NN a)) (X (. .)))", (2, 2, 2), {}),
    # Without its trace SBAR's NP is empty and goes. Left: S 0-2, NP 0-1, VP 1-2.
    "functions and traces": (TRACE, "(ROOT (S (NP (NNP Kim)) (VP (VBZ sleeps))))", (3, 3, 3), {}),
    "an outer label within": (KIM, OUTER, (3, 3, 3), {}),  # evalb deletes it wherever it stands
    "ADVP and PRT": ("(VP (VB give) (PRT (RP up)))", "(VP (VB give) (ADVP (RP up)))", (2, 2, 2), {}),
    # NP 0-1 twice against three times: 2 match, and S 0-1.
    "a bracket matches once": (TWICE, THRICE, (3, 3, 4), {"complete": 0, "precision": 75, "recall": 100}),
    "the other way round": (THRICE, TWICE, (3, 4, 3), {"precision": 100, "recall": 75}),
    # The comma is a noun and "a" a comma. By gold tags the words are "a b": NP 0-1, VP 1-2, S 0-2.
    "gold tags say what punctuation is": (
        "(S (NP (NN a)) (, ,) (VP (VB b)))", "(S (NP (, a)) (NN ,) (VP (VB b)))", (3, 3, 3),
        {"errors": 0, "unmatched_punctuation": 1, "words": 2, "right_tags": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_brackets(name):
    gold, predicted, expected, facts = CASES[name]
    result = score_tree(parse_tree(gold), parse_tree(predicted))[0]
    assert (result.matched, result.gold, result.predicted) == expected
    assert {fact: getattr(result, fact) for fact in facts} == pytest.approx(facts)
    assert bracketing_f1([predicted], [gold]) == pytest.approx(200 * expected[0] / sum(expected[1:]))


@pytest.mark.parametrize(
    ("predicted", "errors", "skipped", "words"),
    [
        ("", 0, 1, "blank"),
        (None, 1, 0, "not a tree"),
        (parse_tree("(S (NN a))"), 1, 0, "1 word,.* 2$"),
        (parse_tree("(S (NN a) (NN c))"), 1, 0, "'c' where the gold tree has 'b'"),
    ],
)
def test_what_cannot_be_compared_is_counted_and_left_out(predicted, errors, skipped, words):
    gold, good = parse_tree("(S (NN a) (NN b))"), parse_tree("(S (NN a))")
    total, short, (problem,) = score_trees([good, gold], [good, predicted])
    assert (total.sentences, total.errors, total.skipped, total.valid) == (2, errors, skipped, 1)
    assert (total.matched, total.gold, total.predicted, total.complete_match) == (1, 1, 1, 100)
    assert short == total and problem.startswith("sentence 2: ")
    assert re.search(words, problem)


def test_sums_are_over_all_brackets_and_short_sentences_apart():
    # 41 words with the full stop are long: 1 of 1 bracket. The short one: 0 of 1. All: 2 of 3.
    long, exactly = (parse_tree(f"(S {'(NN a) ' * count}(. .))") for count in (40, 39))
    short, wrong = (parse_tree(f"({label} (NN a) (NN b))") for label in ("S", "NP"))
    total, cut, _ = score_trees([long, short, long], [long, wrong, long])
    assert (total.matched, total.gold, total.predicted) == (2, 3, 3)
    assert total.f1 == total.complete_match == pytest.approx(200 / 3)
    assert (cut.sentences, cut.f1, cut.words) == (1, 0, 2)
    assert score_trees([exactly], [exactly])[1].sentences == 1 and score_trees([short], [short], 1)[1].sentences == 0


def test_numbers_of_trees():
    tree = parse_tree("(NN a)")
    for gold, predicted, message in (([tree, tree], [tree], "2 gold trees, .*1 prediction"), ([], [], "no trees")):
        with pytest.raises(UserError, match=message):
            score_trees(gold, predicted)
    assert score_trees([tree], [tree])[0].f1 == 0  # no bracket at all


def test_predictions_are_read_line_by_line(tmp_path):
    path = tmp_path / "p.txt"
    path.write_text("(ROOT (S (NN a)))\n\n(S (NN a)\n(S a b)\n")
    assert read_predictions(str(path)) == [parse_tree("(TOP (S (NN a)))"), "", None, None]


TREES = (
    "( (S\n  (NP-SBJ (NNP Kim))\n  (VP (VBZ sleeps)) (. .)))\n(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (NNP Kim))))\n"
)
# S, NP, VP match. Second: S 0-4, NP 0-2, NP 3-4 match, VP 2-3 does not (gold: 2-4), ADJP 0-1 is too much.
FIRST = "(TOP (S (NP (NNP Kim)) (VP (VBZ sleeps)) (. .)))\n"
PREDICTED = FIRST + "(TOP (S (NP (ADJP (DT a)) (NN cat)) (VP (VBZ sees)) (NP (NN Kim))))\n"


@pytest.fixture
def evalb(call_command, tmp_path):
    """Scores predicted trees against gold ones; returns (result, the figures of its two blocks)."""

    def evalb(predicted, *flags, gold=TREES):
        (tmp_path / "gold.mrg.gz").write_bytes(gzip.compress(gold.encode()))
        (tmp_path / "p.txt").write_text(predicted)
        result = call_command("t2t-evalb", "--gold=gold.mrg.gz", "--predicted=p.txt", *flags)
        blocks = result.stdout.strip().split("\n\n") if result.stdout else []
        return result, [dict(line.replace(" ", "").split("=") for line in block.splitlines()[1:]) for block in blocks]

    return evalb


def test_the_figures_of_two_trees(evalb):
    result, (total, short) = evalb(PREDICTED, "--cutoff=3")
    assert (result.status, result.stderr) == (0, "")
    assert result.stdout.startswith("-- All --\nNumber of sentence        =      2\n")
    assert "\n\n-- len<=3 --\n" in result.stdout
    assert total == {
        "Numberofsentence": "2", "NumberofErrorsentence": "0", "NumberofSkipsentence": "0",
        "NumberofValidsentence": "2",
        "Otherpunctuationtags": "0", "BracketingRecall": "85.71", "BracketingPrecision": "75.00",  # 6/7, 6/8
        "BracketingFMeasure": "80.00", "Completematch": "50.00", "Taggingaccuracy": "83.33",  # 12/15, 1/2, 5/6
    }  # fmt: skip
    assert (short["Numberofsentence"], short["BracketingFMeasure"]) == ("1", "100.00")
    assert "\n-- len<=40 --\n" in evalb(PREDICTED)[0].stdout


@pytest.mark.parametrize(("bad", "name"), [("", "Skip"), ("(S (NP", "Error"), ("(S (NN a))", "Error")])
def test_what_is_left_out_is_said(bad, name, evalb):
    result, (total, _) = evalb(f"{FIRST}{bad}\n")
    assert result.status == 0 and result.stderr.startswith("p.txt, sentence 2: ")
    assert (total[f"Numberof{name}sentence"], total["NumberofValidsentence"]) == ("1", "1")
    assert total["BracketingFMeasure"] == "100.00"


def test_of_many_problems_the_first_are_shown(evalb):
    lines = evalb("(\n" * 12 + FIRST, gold="(S (NN a))\n" * 13)[0].stderr.splitlines()
    assert [line[: line.index(":")] for line in lines] == [
        *[f"p.txt, sentence {number}" for number in range(1, 11)], "p.txt"
    ]  # fmt: skip
    assert "3 more" in lines[-1]  # the first line's words differ, too


@pytest.mark.parametrize(
    ("predicted", "gold", "words"),
    [
        (FIRST, TREES, ["gold.mrg.gz has 2 trees", "p.txt has 1 line"]),
        (PREDICTED, TREES + "(S (NN a)\n", ["gold.mrg.gz, line 5", "not closed"]),
        ("", TREES, ["p.txt", "empty"]),
    ],
)
def test_bad_files(evalb, assert_user_error, predicted, gold, words):
    assert_user_error(evalb(predicted, gold=gold)[0], *words)


def test_missing_flags_and_files(call_command, assert_user_error):
    assert_user_error(call_command("t2t-evalb", "--gold=a"), "--predicted")
    assert_user_error(call_command("t2t-evalb", "--predicted=a"), "--gold")
    assert_user_error(call_command("t2t-evalb", "--gold=a", "--predicted=b"), "a", "no such file")
