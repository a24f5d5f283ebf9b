"""Tools to evaluate a parser: words and phrases of a treebank, recombined trees, invalid outputs, and F1 by length.

python benchmarks/extras/parsing/parsing.py words trees.test.gz > test.words
python benchmarks/extras/parsing/parsing.py phrases trees.train.gz > phrases.mrg
python benchmarks/extras/parsing/parsing.py recombined trees.train.gz > recombined.mrg
python benchmarks/extras/parsing/parsing.py errors train/avg trees.test.gz test.trees
"""

import collections
import random
import sys

from t2t_lite.extras.parsing import trees
from t2t_lite.extras.parsing.evalb import Result, score_tree

_LENGTHS = (10, 20, 30, 40, 10**6)


def words(path):
    """Prints the words of all trees, one sentence per line."""
    for tree, _ in trees.read_trees(path):
        print(" ".join(trees.linearize(tree)[0]))


def phrases(path, shortest=3, longest=20):
    """Prints every tree, and each of its phrases that has 3 to 20 words as a separate tree, without duplicates."""
    lines = set()
    for tree, _ in trees.read_trees(path):
        print(trees.to_line(tree))
        for node in tree.subtrees(lambda node: node.label() != trees.TOP and len(node) > 1):
            count, line = len(node.leaves()), f"({trees.TOP} {trees.to_line(node)})"
            if shortest <= count <= longest and count < len(tree.leaves()) and line not in lines:
                lines.add(line)
                print(line)


def recombined(path, count=60_000, share=0.25, longest=50, longest_phrase=20):
    """Prints new trees, in which phrases of a treebank are randomly replaced by phrases with the same label.

    A phrase is replaced with probability `share`. The sentences make no sense, but their brackets are right. This is
    like SUB2 for treebanks (Shi et al. 2020).
    """
    draw = random.Random(1)
    treebank = [tree for tree, _ in trees.read_trees(path)]
    others, lines = collections.defaultdict(list), set()

    def may_change(node):
        return not trees.is_word(node) and len(node.leaves()) <= longest_phrase

    for tree in treebank:
        for node in tree.subtrees(lambda node: node.label() != trees.TOP and may_change(node)):
            others[node.label()].append(node)

    def recombine(node, is_sentence=False):
        if trees.is_word(node):
            return node
        if not is_sentence and may_change(node) and draw.random() < share:
            return draw.choice(others[node.label()])
        return type(node)(node.label(), [recombine(child, node.label() == trees.TOP) for child in node])

    while len(lines) < int(count):
        tree = recombine(draw.choice(treebank), is_sentence=True)
        line = trees.to_line(tree)
        if len(tree.leaves()) <= longest and line not in lines:
            lines.add(line)
            print(line)


def errors(model, path, output=None, settings=""):
    """Decodes a treebank, prints statistics on invalid and wrong outputs, and writes the trees.

    `settings` has the form of `--decode_hparams`; by default, the problem's settings are used.
    """
    from t2t_lite.decoding.command.decode_hparams import DecodeHParams
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(model)
    options = DecodeHParams.parse(settings, defaults=translator.problem.decode_defaults).search_options()
    gold = [tree for tree, _ in trees.read_trees(path)]
    table = translator.encoders["targets"]
    labels = {entry[1:] for entry in table.pieces(range(table.vocab_size)) if entry.startswith("/")}
    every = vars(options) | {"n_best": options.beam_size}
    translations = translator.translate([" ".join(tree.leaves()) for tree in gold], **every)
    if output:
        with open(output, "w", encoding="utf-8") as file:
            file.writelines(translation.text + "\n" for translation in translations)
    kinds = {name: collections.Counter() for name in ("scored best", "chosen")}
    sums, by_length = collections.defaultdict(Result), collections.defaultdict(Result)
    for tree, translation in zip(gold, translations, strict=True):
        count, hypotheses = len(tree.leaves()), translation.hypotheses
        results = [score_tree(tree, trees.parse_tree(hypothesis.text))[0] for hypothesis in hypotheses]
        first = max(range(len(hypotheses)), key=lambda at: hypotheses[at].score)
        for name, at in (("scored best", first), ("chosen", 0)):
            kind = _kind(hypotheses[at].tokens, count, labels)
            kinds[name][kind] += 1
            sums[name] += results[at]
            if kind == "valid":
                sums[f"{name}, valid ones only"] += results[at]
        if count <= 40:
            sums["chosen, up to 40 words"] += results[0]
        in_order = trees.build_tree(translation.tokens, tree.leaves(), labels)
        sums["chosen, tags not aligned"] += score_tree(tree, in_order)[0]
        sums["hypothesis with the best F1"] += max(results, key=lambda result: result.f1)
        by_length[next(longest for longest in _LENGTHS if count <= longest)] += results[0]
    for name, counts in kinds.items():
        print(f"{name}, as the model writes it")
        for kind, number in counts.most_common():
            print(f"  {kind:32} {number:5}  {100 * number / len(gold):6.2f} %")
    print("after repair                         F1  precision  recall   tags  complete  sentences")
    for name, result in sums.items():
        print(f"{name:32} {result.f1:6.2f} {result.precision:10.2f} {result.recall:7.2f}", end=" ")
        print(f"{result.tagging_accuracy:6.2f} {result.complete_match:9.2f} {result.sentences:10}")
    print("words    sentences     F1  complete  tags")
    for longest, result in sorted(by_length.items()):
        name = f"<= {longest}" if longest < 10**6 else "longer"
        shares = f"{result.f1:6.2f} {result.complete_match:9.2f} {result.tagging_accuracy:6.2f}"
        print(f"{name:8} {result.sentences:9} {shares}")


def _kind(tokens, count, labels):
    """Returns "valid", or the reason why the tokens are not a tree over `count` words."""
    if _is_tree(tokens, count, labels):
        return "valid"
    tags = sum(token not in labels and not token.startswith("/") for token in tokens)
    if not _is_tree(tokens, tags, labels):
        return "brackets do not match"
    return f"brackets match, {'fewer' if tags < count else 'more'} tags than words"


def _is_tree(tokens, num_words, labels):
    """Returns whether the tokens form a tree over `num_words` words, so that `build_tree` repairs nothing."""
    return num_words > 0 and trees.linearize(trees.build_tree(tokens, ["word"] * num_words, labels))[1] == [*tokens]


if __name__ == "__main__":
    {"words": words, "phrases": phrases, "recombined": recombined, "errors": errors}[sys.argv[1]](*sys.argv[2:])
