"""Converts constituency trees between Penn Treebank brackets and token sequences (paper, section 6.3).

    (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .))   <->   words The cat sleeps .
                                                                tokens S NP DT NN /NP VP VBZ /VP . /S

The tokens are those of tensor2tensor (data_generators/wsj_parsing.py, after Vinyals et al. 2015): a phrase opens with
its label and closes with `/label`, and a part of speech stands for one word. The output therefore does not repeat the
words, and any sequence of tokens can be turned into a tree over the words of the input (see `build_tree`).

Trees are `Tree` objects of nltk, which also parses the brackets: `pip install t2t_lite[parsing]`.
"""

import collections
import dataclasses
import re

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.plain_text import report
from t2t_lite.errors import UserError, counted, first_line, needs

TOP = "TOP"
OUTER_LABELS = ("", "ROOT", "S1", TOP)  # labels that treebanks give to the bracket around a sentence
EMPTY_TAG = "-NONE-"
UNKNOWN_TAG = "NN"  # the most frequent tag of English, for words without a tag in the output
DEEPEST = 200  # maximum depth of brackets; the Penn Treebank stays below 40, and Python allows 1000 nested calls
_BRACKETS = {"(": "-LRB-", ")": "-RRB-"}
# A word may contain a no-break space or a similar character, at which nltk would split the word. Private-use characters
# replace these spaces while nltk parses.
_SPACES = [ord(c) for c in map(chr, range(0x80, 0x3001)) if c.isspace()]
_HIDDEN = {space: 0x10FF00 + at for at, space in enumerate(_SPACES)}
_SHOWN = {hidden: space for space, hidden in _HIDDEN.items()}
OTHER_TAG, ALONE = 1.5, 1.0  # alignment costs: a tag that its word never had in training; an unpaired tag or word
RARE = ""  # key for unknown words, which get the tags of words that occur once in the training trees


def import_nltk():
    """Returns the module `nltk.tree`. If nltk is not installed, raises `UserError`, which contains the pip command."""
    with needs("nltk", "parsing", "reading trees"):
        import nltk.tree
    return nltk.tree


# Files of trees.


def read_trees(path, on_bad_line=None):
    """Yields (normalized Tree, number of its first line) from a file of bracketed trees, which may be compressed.

    A tree may span lines and a line may contain several trees, as in the Penn Treebank's `.mrg` files.

    Args:
        path: str.
        on_bad_line: None, or a function called with a message about each bad tree, which is skipped. Unmatched brackets
            are still an error, because the beginning of the next tree is unknown.

    Raises:
        UserError: as for `plain_text.read_lines`; or nltk is not installed, brackets do not match, text is outside the
            brackets, a tree has no words, or a word has no part of speech. The message names the file and the line.
    """
    import_nltk()  # if nltk is missing, fails here rather than with a message about the file's first tree
    count = 0
    for text, line in _bracketed(path, on_bad_line):
        where = f"{path}, line {line}"
        count += 1
        try:
            if plain_text.SURROGATE.search(text):
                raise UserError(f"{where}: the tree has bytes that are not UTF-8.")
            tree = parse_tree(text, where)
        except UserError as error:
            report(str(error), on_bad_line)
        else:
            yield tree, line
    if not count:
        raise UserError(f"{path}: contains no tree. Expected brackets such as (S (NP (NNP Kim)) (VP (VBZ sleeps))).")


def parse_tree(text, where="tree"):
    """Parses a string of brackets into a normalized Tree. Raises `UserError`, whose message begins with `where`."""
    depth = longest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        longest = max(longest, depth)
    if longest > DEEPEST:
        raise UserError(f"{where}: {longest} nested brackets. Expected at most {DEEPEST}.")
    tree = import_nltk().Tree
    try:
        raw = tree.fromstring(text.translate(_HIDDEN), read_node=_shown_spaces, read_leaf=_shown_spaces)
    except ValueError as error:
        raise UserError(f"{where}: not a tree: {_shown_spaces(first_line(error))}") from None
    return normalize(raw, where)


def _shown_spaces(text):
    return text.translate(_SHOWN)


def to_line(tree):
    """Returns a Tree as one line of brackets with single spaces."""
    if isinstance(tree, str):
        return tree
    return f"({' '.join([tree.label(), *map(to_line, tree)])})"


def _bracketed(path, on_bad_line):
    """Yields (text of a tree, number of its first line) for each outermost pair of brackets."""
    parts, depth, begin = [], 0, 0
    for number, line in enumerate(plain_text.read_lines(path, on_bad_line, keeps_bad=True), 1):
        line = plain_text.clean(line)
        start = 0
        for match in re.finditer(r"[()]", line):
            if match[0] == "(":
                if not depth:
                    _check_outside(line[start : match.start()], path, number)
                    begin, start = number, match.start()
                depth += 1
                continue
            depth -= 1
            if depth < 0:
                raise UserError(f"{path}, line {number}: closing bracket without an opening bracket.")
            if not depth:
                yield " ".join([*parts, line[start : match.end()]]), begin
                parts, start = [], match.end()
        if depth:
            parts.append(line[start:])
        else:
            _check_outside(line[start:], path, number)
    if depth:
        raise UserError(
            f"{path}, line {begin}: the tree that begins here is not closed. Missing "
            f"at the end of the file: {counted(depth, 'closing bracket')}."
        )


def _check_outside(text, path, number):
    if text.strip():
        raise UserError(
            f"{path}, line {number}: {text.split()[0]!r} is outside of brackets. Expected trees such as "
            "(S (NP (NNP Kim)) (VP (VBZ sleeps)))."
        )


# Normal form.


def normalize(tree, where="tree"):
    """Returns a copy `(TOP …)` without the parts that parsers do not learn, as has been usual since Collins (1997).

    Function labels and indices are removed (NP-SBJ-1 and NP=2 become NP; ADVP|PRT becomes ADVP), and so are empty
    elements (-NONE- and phrases that contain nothing else). The outer bracket becomes TOP, whatever its label is.

    Args:
        tree: nltk Tree.
        where: str, how error messages refer to the tree.

    Raises:
        UserError: the tree has no words, a word has no part of speech, or a label is empty or begins with /.
    """
    children = [tree]
    while len(children) == 1 and not isinstance(children[0], str) and children[0].label() in OUTER_LABELS:
        children = list(children[0])
    nonempty = [child for child in (_normalized(child, where) for child in children) if child is not None]
    if not nonempty:
        raise UserError(f"{where}: the tree has no words. Expected at least one.")
    return type(tree)(TOP, nonempty)


def strip_label(label):
    """Strips function, index and alternative from a label: NP-SBJ-1 -> NP. Labels such as -LRB- do not change."""
    return label if label.startswith("-") else re.split(r"[-=|]", label, maxsplit=1)[0] or label


def _normalized(tree, where):
    """Returns the normalized copy of an inner node, or None if it is empty."""
    if isinstance(tree, str):
        raise UserError(
            f"{where}: the word {tree!r} has no part of speech. Expected brackets such as ({UNKNOWN_TAG} {tree})."
        )
    label = strip_label(tree.label())
    if not label or label.startswith("/"):
        raise UserError(f"{where}: {tree.label()!r} is not a label. Expected a label that does not begin with /.")
    if len(tree) == 1 and isinstance(tree[0], str):
        return None if label == EMPTY_TAG else type(tree)(label, [tree[0]])
    children = [child for child in (_normalized(child, where) for child in tree) if child is not None]
    return type(tree)(label, children) if children else None


def is_word(node):
    """Returns whether a node is a word with its part of speech."""
    return len(node) == 1 and isinstance(node[0], str)


# Sequences.


def linearize(tree):
    """Converts a normalized Tree to (words, tokens), two lists of str; TOP has no token."""
    words, tokens = [], []

    def visit(node):
        tokens.append(node.label())
        if is_word(node):
            words.append(node[0])
            return
        for child in node:
            visit(child)
        tokens.append("/" + node.label())

    for child in tree:
        visit(child)
    return words, tokens


def escape_words(text):
    """Splits a text into words and escapes brackets as in treebanks, e.g. ( as -LRB-.

    Spaces and control characters separate words; a no-break space may be part of a word.
    """
    words = plain_text.clean(text).split(" ")
    return [re.sub(r"[()]", lambda match: _BRACKETS[match[0]], word) for word in words if word]


@dataclasses.dataclass
class _Phrase:
    label: str
    children: list = dataclasses.field(default_factory=list)


def build_tree(tokens, words, phrases=(), known_tags=None):
    """Builds the Tree `(TOP …)` that a sequence of tokens describes, over exactly the given words.

    A sequence with one tag per word, matching brackets and no empty phrase describes exactly one tree. Any other
    sequence is repaired:

    1. Tags and words are aligned (see `align`). A tag without a word is dropped. A word without a tag gets its most
       frequent tag, or NN, and follows the previous word. At the end of the sentence, words without tags go
       into the innermost open phrase or, if no phrase is open, to the end of the last phrase.
    2. `/X` closes the innermost open X and everything open inside it. If no X is open, the token is ignored.
    3. Phrases that are open at the end are closed. A phrase is dropped if it has no words, or if it would be nested
       inside 198 other phrases.

    Args:
        tokens: list of str.
        words: list of str, at least one.
        phrases: labels of phrases, in addition to every X for which the tokens contain `/X`. These labels are needed to
            distinguish tags from phrases that are never closed.
        known_tags: result of `learn_tags` for the training trees, or None.
    """
    phrases, known_tags = set(phrases) | _closed(tokens), known_tags or {}
    pairs = list(reversed(_tagged(tokens, words, phrases, known_tags)))
    stack, tags_left = [_Phrase(TOP)], sum(tag is not None for tag, _ in pairs)

    def put_words_alone(place):
        while pairs and pairs[-1][0] is None:
            word = pairs.pop()[1]
            place.children.append((next(iter(known_tags.get(word, ())), UNKNOWN_TAG), word))

    for token in tokens:
        if _is_closing(token):
            labels = [phrase.label for phrase in stack]
            if token[1:] in labels[1:]:
                del stack[len(labels) - 1 - labels[::-1].index(token[1:]) :]
        elif token in phrases:
            if len(stack) >= DEEPEST - 1:  # the tag of a word in this phrase adds one more bracket
                continue
            phrase = _Phrase(token)
            stack[-1].children.append(phrase)
            stack.append(phrase)
        else:
            put_words_alone(stack[-1])  # adds words that precede the first tag
            tag, word = pairs.pop()
            if word is not None:
                stack[-1].children.append((tag, word))
            tags_left -= 1
            if tags_left:
                put_words_alone(stack[-1])
    place = stack[-1]
    if len(stack) == 1 and place.children and isinstance(place.children[-1], _Phrase):
        place = place.children[-1]
    put_words_alone(place)
    return _to_nltk(stack[0], import_nltk().Tree)


def misfit(tokens, words, phrases, known_tags):
    """Measures how badly the tags fit the words, as a float; 0 if each word gets a tag that it had in training.

    The result is the `cost` of the alignment that `build_tree` computes from the same arguments.
    """
    return cost(_tagged(tokens, words, set(phrases) | _closed(tokens), known_tags), known_tags)


def _tagged(tokens, words, phrases, known_tags):
    """Pairs tags with words, in order if there are as many tags as words, otherwise with `align`."""
    tags = [token for token in tokens if token not in phrases and not _is_closing(token)]
    return align(tags, words, known_tags if len(tags) != len(words) else {})


def _is_closing(token):
    return len(token) > 1 and token.startswith("/")


def _closed(tokens):
    return {token[1:] for token in tokens if _is_closing(token)}


def _to_nltk(phrase, tree):
    children = []
    for child in phrase.children:
        if isinstance(child, tuple):
            children.append(tree(child[0], [child[1]]))
        elif (subtree := _to_nltk(child, tree)) is not None:
            children.append(subtree)
    return tree(phrase.label, children) if children else None


def learn_tags(pairs):
    """Counts (word, tag) pairs; returns {word: tags, most frequent first}. The key "" stands for all other words."""
    counts = collections.defaultdict(collections.Counter)
    for word, tag in pairs:
        counts[word][tag] += 1
    once = collections.Counter(next(iter(tags)) for tags in counts.values() if tags.total() == 1)
    return {RARE: _by_count(once)} | {word: _by_count(tags) for word, tags in sorted(counts.items())}


def align(tags, words, known_tags):
    """Aligns tags with words, in order and at the lowest cost; ties go to the alignment that pairs earliest.

    Args:
        tags: list of str.
        words: list of str.
        known_tags: result of `learn_tags`; if {}, surplus tags or words are left unpaired at the end.

    Returns:
        List of (tag or None, word or None).
    """
    allowed = [set(known_tags.get(word, known_tags.get(RARE, ()))) for word in words]
    rows, columns = len(tags), len(words)
    # cost[i][j] is the lowest cost of aligning tags[i:] with words[j:], at first the cost without any pair.
    cost = [[(rows - i + columns - j) * ALONE for j in range(columns + 1)] for i in range(rows + 1)]
    for i in reversed(range(rows)):
        for j in reversed(range(columns)):
            pair = 0 if tags[i] in allowed[j] else OTHER_TAG
            cost[i][j] = min(pair + cost[i + 1][j + 1], ALONE + cost[i + 1][j], ALONE + cost[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < rows or j < columns:
        pair = 0 if i < rows and j < columns and tags[i] in allowed[j] else OTHER_TAG
        if i < rows and j < columns and cost[i][j] == pair + cost[i + 1][j + 1]:
            pairs.append((tags[i], words[j]))
            i, j = i + 1, j + 1
        elif i < rows and cost[i][j] == ALONE + cost[i + 1][j]:
            pairs.append((tags[i], None))
            i += 1
        else:
            pairs.append((None, words[j]))
            j += 1
    return pairs


def cost(pairs, known_tags):
    """Returns the cost, float, of an alignment that `align` returned for the same `known_tags`."""
    return sum(
        ALONE
        if tag is None or word is None
        else OTHER_TAG * (tag not in known_tags.get(word, known_tags.get(RARE, ())))
        for tag, word in pairs
    )


def _by_count(tags):
    return [tag for tag, _ in sorted(tags.items(), key=lambda item: (-item[1], item[0]))]
