"""What a trained parser gets wrong: sentences of a treebank, validity of what it writes, and F1 by length.

python benchmarks/parsing.py words trees.test.gz > test.words
python benchmarks/parsing.py errors train/avg trees.test.gz
"""

import collections
import sys

from t2t_lite.data import trees
from t2t_lite.evaluation.evalb import Result, score_tree

_LENGTHS = (10, 20, 30, 40, 10**6)


def words(path):
    """Prints the words of every tree, one sentence a line."""
    for tree, _ in trees.read_trees(path):
        print(" ".join(trees.linearize(tree)[0]))


def errors(model, path):
    """Decodes a treebank by the problem's own search and prints what is invalid and what is wrong."""
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(model)
    gold = [tree for tree, _ in trees.read_trees(path)]
    table = translator.encoders["targets"]
    phrases = {entry[1:] for entry in table.pieces(range(table.vocab_size)) if entry.startswith("/")}
    found = translator.translate([" ".join(tree.leaves()) for tree in gold])
    kinds, by_length = collections.Counter(), collections.defaultdict(Result)
    valid_only = Result()
    for tree, translation in zip(gold, found, strict=True):
        count = len(tree.leaves())
        kind = _kind(translation.tokens, count, phrases)
        kinds[kind] += 1
        result, _ = score_tree(tree, trees.parse_tree(translation.text))
        by_length[next(longest for longest in _LENGTHS if count <= longest)] += result
        if kind == "valid":
            valid_only += result
    for kind, number in kinds.most_common():
        print(f"{kind:32} {number:5}  {100 * number / len(gold):6.2f} %")
    print(f"F1 of the valid ones {valid_only.f1:.2f}")
    print("words    sentences     F1  complete  tags")
    for longest, result in sorted(by_length.items()):
        name = f"<= {longest}" if longest < 10**6 else "longer"
        shares = f"{result.f1:6.2f} {result.complete_match:9.2f} {result.tagging_accuracy:6.2f}"
        print(f"{name:8} {result.sentences:9} {shares}")


def _kind(tokens, count, phrases):
    """Returns "valid", or what is wrong with the tokens as a tree over `count` words."""
    if trees.is_valid(tokens, count, phrases):
        return "valid"
    tags = sum(token not in phrases and not token.startswith("/") for token in tokens)
    if not trees.is_valid(tokens, tags, phrases):
        return "brackets do not match"
    return f"brackets match, {'fewer' if tags < count else 'more'} tags than words"


if __name__ == "__main__":
    {"words": words, "errors": errors}[sys.argv[1]](*sys.argv[2:])
