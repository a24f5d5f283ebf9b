"""For measuring a parser: sentences and phrases of a treebank, validity of what is written, and F1 by length.

python benchmarks/parsing.py words trees.test.gz > test.words
python benchmarks/parsing.py phrases trees.train.gz > phrases.mrg
python benchmarks/parsing.py errors train/avg trees.test.gz test.trees
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


def phrases(path, shortest=3, longest=20):
    """Prints every tree, and after it each phrase of 3 to 20 words in it, once, as a tree of its own."""
    seen = set()
    for tree, _ in trees.read_trees(path):
        print(trees.to_line(tree))
        for node in tree.subtrees(lambda node: node.label() != trees.TOP and len(node) > 1):
            count, line = len(node.leaves()), f"({trees.TOP} {trees.to_line(node)})"
            if shortest <= count <= longest and count < len(tree.leaves()) and line not in seen:
                seen.add(line)
                print(line)


def errors(model, path, output=None):
    """Decodes a treebank by the problem's own search, prints what is invalid and wrong, and keeps the trees."""
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(model)
    gold = [tree for tree, _ in trees.read_trees(path)]
    table = translator.encoders["targets"]
    labels = {entry[1:] for entry in table.pieces(range(table.vocab_size)) if entry.startswith("/")}
    found = translator.translate([" ".join(tree.leaves()) for tree in gold])
    if output:
        with open(output, "w", encoding="utf-8") as file:
            file.writelines(translation.text + "\n" for translation in found)
    kinds, by_length = collections.Counter(), collections.defaultdict(Result)
    valid_only, unaligned = Result(), Result()
    for tree, translation in zip(gold, found, strict=True):
        count = len(tree.leaves())
        kind = _kind(translation.tokens, count, labels)
        kinds[kind] += 1
        in_order = trees.build_tree(translation.tokens, tree.leaves(), labels)
        unaligned += score_tree(tree, in_order)[0]
        result, _ = score_tree(tree, trees.parse_tree(translation.text))
        by_length[next(longest for longest in _LENGTHS if count <= longest)] += result
        if kind == "valid":
            valid_only += result
    for kind, number in kinds.most_common():
        print(f"{kind:32} {number:5}  {100 * number / len(gold):6.2f} %")
    print(f"F1 of the valid ones {valid_only.f1:.2f}, of all without aligning tags and words {unaligned.f1:.2f}")
    print("words    sentences     F1  complete  tags")
    for longest, result in sorted(by_length.items()):
        name = f"<= {longest}" if longest < 10**6 else "longer"
        shares = f"{result.f1:6.2f} {result.complete_match:9.2f} {result.tagging_accuracy:6.2f}"
        print(f"{name:8} {result.sentences:9} {shares}")


def _kind(tokens, count, labels):
    """Returns "valid", or what is wrong with the tokens as a tree over `count` words."""
    if trees.is_valid(tokens, count, labels):
        return "valid"
    tags = sum(token not in labels and not token.startswith("/") for token in tokens)
    if not trees.is_valid(tokens, tags, labels):
        return "brackets do not match"
    return f"brackets match, {'fewer' if tags < count else 'more'} tags than words"


if __name__ == "__main__":
    {"words": words, "phrases": phrases, "errors": errors}[sys.argv[1]](*sys.argv[2:])
