"""Aligns the tags of a parser's output with the words if their numbers differ.

If a model omits one tag, all later tags would otherwise belong to the wrong words. Tags and words are therefore aligned
as for an edit distance: pairing a word with a tag that it has in the training trees costs 0, pairing it with another
tag costs 1.5, and leaving a tag or a word unpaired costs 1.
"""

import collections

OTHER_TAG, ALONE = 1.5, 1.0
RARE = ""  # the entry for words that are not in the training trees: the tags of those that occur once


def learn_tags(pairs):
    """Returns {word: tags, most frequent first} from (word, tag) pairs; the entry "" is for all other words."""
    counts = collections.defaultdict(collections.Counter)
    for word, tag in pairs:
        counts[word][tag] += 1
    once = collections.Counter(next(iter(tags)) for tags in counts.values() if tags.total() == 1)
    return {RARE: _by_count(once)} | {word: _by_count(tags) for word, tags in sorted(counts.items())}


def align(tags, words, known_tags):
    """Returns (tag or None, word or None) pairs in order, at the lowest cost; ties are paired as early as possible.

    Args:
        tags: list of str.
        words: list of str.
        known_tags: result of `learn_tags`; with {}, surplus tags or words are left unpaired at the end.
    """
    allowed = [set(known_tags.get(word, known_tags.get(RARE, ()))) for word in words]
    rows, columns = len(tags), len(words)
    # cost[i][j]: of aligning tags[i:] with words[j:]
    cost = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            if i == rows or j == columns:
                cost[i][j] = (rows - i + columns - j) * ALONE
            else:
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
    """Returns the cost of an alignment, float; the arguments are the result of `align` and its `known_tags`."""
    return sum(
        ALONE
        if tag is None or word is None
        else OTHER_TAG * (tag not in known_tags.get(word, known_tags.get(RARE, ())))
        for tag, word in pairs
    )


def _by_count(tags):
    return [tag for tag, _ in sorted(tags.items(), key=lambda item: (-item[1], item[0]))]
