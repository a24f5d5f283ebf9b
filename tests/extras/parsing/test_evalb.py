"""Brackets counted by hand, as evalb with COLLINS.prm counts them."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.parsing.evalb import read_predictions, score_tree, score_trees
from t2t_lite.extras.parsing.trees import parse_tree

GOLD = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .)))"


def score(gold, predicted):
    return score_tree(parse_tree(gold), parse_tree(predicted))[0]


def counts(result):
    return result.matched, result.gold, result.predicted


def test_equal_trees():
    # S 0-6, NP 0-2, VP 2-6, PP 3-6, NP 4-6: five brackets (the full stop is no word), six words.
    result = score(GOLD, GOLD)
    assert counts(result) == (5, 5, 5)
    assert (result.precision, result.recall, result.f1) == (100, 100, 100)
    assert (result.complete_match, result.words, result.tagging_accuracy) == (100, 6, 100)


def test_another_attachment_and_a_wrong_tag():
    # Predicted: S 0-6, NP 0-2, VP 2-3, PP 3-6, NP 4-6. VP differs: 4 of 5 match on both sides, F1 = 2·4/10 = 80 %.
    # Tags: on is RP, 5 of 6 are right = 83.33 %.
    predicted = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (PP (RP on) (NP (DT the) (NN mat))) (. .)))"
    result = score(GOLD, predicted)
    assert counts(result) == (4, 5, 5)
    assert result.f1 == pytest.approx(80)
    assert result.complete_match == 0
    assert result.tagging_accuracy == pytest.approx(100 * 5 / 6)


def test_precision_and_recall_differ():
    # Flat: S 0-6, NP 0-2. Both match: precision 2/2, recall 2/5, F1 = 2·2/(5 + 2) = 57.14 %.
    flat = "(TOP (S (NP (DT The) (NN cat)) (VBD sat) (IN on) (DT the) (NN mat) (. .)))"
    result = score(GOLD, flat)
    assert counts(result) == (2, 5, 2)
    assert (result.precision, result.recall) == (100, 40)
    assert result.f1 == pytest.approx(400 / 7)


def test_labels_count():
    # The same spans, NP 0-2 called ADJP and PP 3-6 called SBAR: 3 of 5.
    predicted = GOLD.replace("(S (NP (DT The)", "(S (ADJP (DT The)").replace("(PP", "(SBAR")
    assert counts(score(GOLD, predicted)) == (3, 5, 5)


def test_punctuation_moves_no_bracket():
    # The comma inside of NP or outside: NP is 0-1 and S 0-2 in both. `` and '' are no words either; -LRB- is one.
    inside = "(S (NP (NNP Kim) (, ,)) (VP (VBZ sleeps)) (. !))"
    outside = "(S (NP (NNP Kim)) (, ,) (VP (VBZ sleeps) (. !)))"
    assert counts(score(inside, outside)) == (3, 3, 3)
    assert score(inside, outside).complete == 1
    quoted = "(S (`` ``) (NP (NNP Kim)) ('' '') (: ;) (-LRB- -LRB-))"
    assert counts(score(quoted, quoted)) == (2, 2, 2)
    assert score(quoted, quoted).words == 2


def test_a_phrase_of_punctuation_alone_is_no_bracket():
    # Gold: S 0-1, NP 0-1. Predicted: the same, and X around the full stop, which has no words.
    assert counts(score("(S (NP (NN a)) (. .))", "(S (NP (NN a)) (X (. .)))")) == (2, 2, 2)


def test_outer_brackets_functions_and_traces_do_not_count():
    # Without its trace SBAR's NP is empty and goes. Left: S 0-2, NP 0-1, VP 1-2.
    raw = "( (S (NP-SBJ-1 (NNP Kim)) (VP (VBZ sleeps) (SBAR (NP (-NONE- *T*-1))))))"
    assert counts(score(raw, "(ROOT (S (NP (NNP Kim)) (VP (VBZ sleeps))))")) == (3, 3, 3)
    # A TOP within: evalb deletes the label wherever it stands.
    assert counts(score("(S (NP (NN a)) (NP (NN b)))", "(S (TOP (NP (NN a))) (NP (NN b)))")) == (3, 3, 3)


def test_advp_and_prt_are_equal():
    # VP 0-2, PRT 1-2 against VP 0-2, ADVP 1-2.
    assert counts(score("(VP (VB give) (PRT (RP up)))", "(VP (VB give) (ADVP (RP up)))")) == (2, 2, 2)


def test_each_bracket_matches_once():
    # Gold has NP 0-1 twice (a unary chain), the prediction three times: 2 match. S 0-1 in both.
    gold, predicted = "(S (NP (NP (NN a))))", "(S (NP (NP (NP (NN a)))))"
    assert counts(score(gold, predicted)) == (3, 3, 4)
    assert score(gold, predicted).complete == 0
    assert counts(score(predicted, gold)) == (3, 4, 3)


def test_gold_tags_say_what_punctuation_is():
    # Predicted: the comma is a noun and "a" a comma. By gold tags the words are "a b": NP 0-1, VP 1-2, S 0-2.
    gold = "(S (NP (NN a)) (, ,) (VP (VB b)))"
    predicted = "(S (NP (, a)) (NN ,) (VP (VB b)))"
    result = score(gold, predicted)
    assert counts(result) == (3, 3, 3)
    assert (result.errors, result.unmatched_punctuation, result.words, result.right_tags) == (0, 1, 2, 1)
    assert score(gold, gold).unmatched_punctuation == 0


@pytest.mark.parametrize(
    ("predicted", "errors", "skipped", "words"),
    [
        ("", 0, 1, "blank"),
        (None, 1, 0, "not a tree"),
        (parse_tree("(S (NN a))"), 1, 0, "1 word, the gold tree has 2"),
        (parse_tree("(S (NN a) (NN c))"), 1, 0, "the word 'c', in the gold tree 'b'"),
    ],
)
def test_what_cannot_be_compared_is_counted_and_left_out(predicted, errors, skipped, words):
    gold = parse_tree("(S (NN a) (NN b))")
    good = parse_tree("(S (NN a))")
    total, short, problems = score_trees([good, gold], [good, predicted])
    assert (total.sentences, total.errors, total.skipped, total.valid) == (2, errors, skipped, 1)
    assert counts(total) == (1, 1, 1)
    assert total.complete_match == 100
    assert short == total
    assert problems == [f"sentence 2: {problems[0].removeprefix('sentence 2: ')}"]
    assert words in problems[0]


def test_sums_are_over_all_brackets_and_short_sentences_apart():
    # 41 words with the full stop are long: 1 of 1 bracket. The short one: 0 of 1. All: 1 of 2, not the mean of two F1.
    long = parse_tree(f"(S {'(NN a) ' * 40}(. .))")
    short = parse_tree("(S (NN a) (NN b))")
    wrong = parse_tree("(NP (NN a) (NN b))")
    total, cut, _ = score_trees([long, short, long], [long, wrong, long])
    assert counts(total) == (2, 3, 3)
    assert total.f1 == pytest.approx(200 / 3)
    assert (cut.sentences, cut.f1, cut.words) == (1, 0, 2)
    assert total.complete_match == pytest.approx(200 / 3)
    exactly = parse_tree(f"(S {'(NN a) ' * 39}(. .))")
    assert score_trees([exactly], [exactly])[1].sentences == 1


def test_numbers_of_trees():
    tree = parse_tree("(NN a)")
    with pytest.raises(UserError, match="2 gold trees, 1 prediction"):
        score_trees([tree, tree], [tree])
    with pytest.raises(UserError, match="no trees"):
        score_trees([], [])
    assert score_trees([tree], [tree])[0].f1 == 0  # no bracket at all


def test_predictions_are_read_line_by_line(tmp_path):
    path = tmp_path / "p.txt"
    path.write_text("(ROOT (S (NN a)))\n\n(S (NN a)\n(S a b)\n")
    found = read_predictions(str(path))
    assert found == [parse_tree("(TOP (S (NN a)))"), "", None, None]
