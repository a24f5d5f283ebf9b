"""The readers of trees: see `tests.files.readers`."""

from t2t_lite.extras.parsing import evalb, trees
from tests.files.readers import TEXT, Reader, read_all

TREE = "(S (NN a))\n"
READERS = {
    "trees": Reader(
        b"(S (NN one))\n" * 9,
        read_all(trees.read_trees),
        TEXT | dict.fromkeys(("U+2028", "NUL"), "part of speech"),
    ),
    "predicted trees": Reader(b"(S (NN one))\n" * 9, evalb.read_predictions, TEXT),
}
DAMAGED = {
    "trees": [
        ("a", f"{TREE}(S (NP (NN b))\n(S (NN c))\n", ", line 2: .* not closed: 1 bracket"),
        ("a", f"{TREE}(S (NN b)))\n", ", line 2: .*unmatched closing bracket"),
        ("a", f"{TREE}hello (S (NN b))\n", ", line 2: 'hello' .*outside"),
        ("a", f"{TREE}\n(S (NP ) )\n", ", line 3: .*without words"),
        ("a", "( (S (-NONE- *)))\n", ", line 1: .*without words"),
        ("a", "()\n", ", line 1: .*without words"),
        ("a", f"{TREE}(S)\n", ", line 2: .*without words"),
        ("a", f"{TREE}(S (NN a)\n", ", line 2: .* not closed: 1 bracket"),
        ("a", f"{TREE}(S b (NN c))\n", ", line 2: .*'b' .*part of speech"),
        ("a", "(S (NN a b))\n", ", line 1: .*'a' .*part of speech"),
        ("a", "(S ((NN a)))\n", ", line 1: .*label.*''|, line 1: .*''.*label"),
        ("a", "(/S (NN a))\n", ", line 1: .*label.*'/S'|, line 1: .*'/S'.*label"),
        ("a", "(S " * 1000 + "(NN a)" + ")" * 1000, ", line 1: .*1001 nested brackets"),
        ("a", "\n \n", ".*no tree"),
        ("a", b"(S (NN a))\n(S (NN \xe4))\n", ", line 2: .*UTF-8"),
        ("a", "no brackets at all\n", ", line 1: .*'no'"),
    ],
}
