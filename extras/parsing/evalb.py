"""Computes labelled bracketing precision, recall and F1 of trees, with the rules of evalb and COLLINS.prm.

Each phrase of a tree is a bracket, (label, first word, last word + 1), under these rules:

* Function labels and indices are removed (NP-SBJ becomes NP). The labels TOP, ROOT and S1 are ignored. ADVP and PRT
  count as the same label.
* Traces (-NONE-) and punctuation (tags `,` `:` ` `` ` `''` `.`) are not counted as words, and a phrase with only traces
  and punctuation is not counted as a bracket.
* A bracket of the prediction matches at most one bracket of the gold tree, and vice versa.

Precision, recall and tagging accuracy are computed from sums over all sentences. A blank prediction is skipped. A
prediction counts as an error if it is not a tree, or if its words differ from those of the gold tree. As in evalb,
blank predictions and errors are counted but left out of the sums.

One rule differs. evalb deletes punctuation from each tree according to that tree's tags. If the prediction tags a comma
as a noun, the two trees differ in length ("Length unmatch"), and evalb leaves out the whole sentence, including its
wrong brackets. Here the gold tags decide which words are punctuation in both trees, so these sentences are scored;
`Result.unmatched_punctuation` counts them.
"""

import collections
import dataclasses

from t2t_lite import registry
from t2t_lite.errors import UserError, counted
from t2t_lite.extras.parsing import trees

CUTOFF = 40  # maximum number of words, including punctuation but not traces (CUTOFF_LEN in COLLINS.prm)
PUNCTUATION_TAGS = (",", ":", "``", "''", ".")
_SAME_LABEL = {"PRT": "ADVP"}


@dataclasses.dataclass
class Result:
    """Counts over sentences, and the percentages computed from the counts (0 where the divisor is 0).

    Attributes:
        sentences: number of sentences.
        errors, skipped: number of invalid predictions, and number of blank ones; the counts below exclude both kinds.
        gold, predicted, matched: numbers of brackets.
        complete: number of sentences in which all brackets match.
        words, right_tags: number of words other than punctuation, and how many of them have the gold tag.
        unmatched_punctuation: number of sentences in which the two trees disagree on which words are punctuation.
    """

    sentences: int = 0
    errors: int = 0
    skipped: int = 0
    gold: int = 0
    predicted: int = 0
    matched: int = 0
    complete: int = 0
    words: int = 0
    right_tags: int = 0
    unmatched_punctuation: int = 0

    valid = property(lambda self: self.sentences - self.errors - self.skipped)
    precision = property(lambda self: _percent(self.matched, self.predicted))
    recall = property(lambda self: _percent(self.matched, self.gold))
    f1 = property(lambda self: _percent(2 * self.matched, self.gold + self.predicted))
    complete_match = property(lambda self: _percent(self.complete, self.valid))
    tagging_accuracy = property(lambda self: _percent(self.right_tags, self.words))

    def __add__(self, other):
        return Result(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)))


def score_trees(gold, predicted, cutoff=CUTOFF):
    """Scores predictions against gold trees.

    Args:
        gold: list of normalized nltk Trees.
        predicted: list of the same length as `gold`; each item is a normalized Tree, None for an invalid tree, or ""
            for a blank line.
        cutoff: maximum number of words, including punctuation, in the sentences of the second result.

    Returns:
        (Result for all sentences, Result for sentences of at most `cutoff` words, list of error messages).

    Raises:
        UserError: the lists are empty, or differ in length.
    """
    if len(gold) != len(predicted):
        raise UserError(
            f"{counted(len(gold), 'gold tree')}, but {counted(len(predicted), 'prediction')}. Expected the same number."
        )
    if not gold:
        raise UserError("There are no trees to score. Expected at least one.")
    total, short, problems = Result(), Result(), []
    for number, (right, guess) in enumerate(zip(gold, predicted, strict=True), 1):
        result, problem = score_tree(right, guess)
        total += result
        if len(right.leaves()) <= cutoff:
            short += result
        if problem:
            problems.append(f"sentence {number}: {problem}")
    return total, short, problems


@registry.register_metric(of="texts", decides=True)
def bracketing_f1(outputs, references):
    """Returns the labelled bracketing F1, from 0 to 100, of trees given as bracketed strings."""
    predicted, gold = ([trees.parse_tree(text) for text in texts] for texts in (outputs, references))
    return score_trees(gold, predicted)[0].f1


def score_tree(gold, predicted):
    """Returns (Result, problem or "") for one sentence; `gold` and `predicted` are items of `score_trees`'s lists."""
    if predicted == "":
        return Result(sentences=1, skipped=1), "blank, skipped"
    if predicted is None:
        return Result(sentences=1, errors=1), "not a tree"
    (right_words, right_tags), (words, tags) = _words_and_tags(gold), _words_and_tags(predicted)
    if len(words) != len(right_words):
        return Result(sentences=1, errors=1), f"{counted(len(words), 'word')}, but the gold tree has {len(right_words)}"
    if words != right_words:
        guess, right = next(pair for pair in zip(words, right_words, strict=True) if pair[0] != pair[1])
        return Result(sentences=1, errors=1), f"found the word {guess!r} where the gold tree has {right!r}"
    is_word = [tag not in PUNCTUATION_TAGS for tag in right_tags]
    right_brackets, brackets = _brackets(gold, is_word), _brackets(predicted, is_word)
    matched = (right_brackets & brackets).total()
    result = Result(
        sentences=1,
        gold=right_brackets.total(),
        predicted=brackets.total(),
        matched=matched,
        complete=int(right_brackets == brackets),
        words=sum(is_word),
        right_tags=sum(map(_same_tag, right_tags, tags, is_word)),
        unmatched_punctuation=int(is_word != [tag not in PUNCTUATION_TAGS for tag in tags]),
    )
    return result, ""


def read_predictions(path):
    """Reads a file with one tree per line: a list of normalized Trees, None for invalid trees, "" for blank lines."""
    from t2t_lite.corpora import plain_text

    trees.import_nltk()
    return [_prediction(plain_text.clean(line)) for line in plain_text.read_lines(path)]


def _prediction(line):
    if not line:
        return ""
    try:
        return trees.parse_tree(line)
    except UserError:
        return None


def _same_tag(right, guess, is_word):
    return is_word and _SAME_LABEL.get(right, right) == _SAME_LABEL.get(guess, guess)


def _words_and_tags(tree):
    pairs = tree.pos()
    return [word for word, _ in pairs], [tag for _, tag in pairs]


def _brackets(tree, is_word):
    """Returns a Counter of (label, begin, end) brackets, whose positions count only the words selected by `is_word`."""
    places = [0]
    for counts in is_word:
        places.append(places[-1] + counts)
    brackets = collections.Counter()

    def visit(node, begin):
        if trees.is_word(node):
            return begin + 1
        end = begin
        for child in node:
            end = visit(child, end)
        if node.label() not in trees.OUTER_LABELS and places[end] > places[begin]:
            brackets[_SAME_LABEL.get(node.label(), node.label()), places[begin], places[end]] += 1
        return end

    visit(tree, 0)
    return brackets


def _percent(part, whole):
    return 100.0 * part / whole if whole else 0.0
