"""Which tag of a parser's output is of which word, where they are not as many.

One tag that a model leaves out early would move all later ones to the wrong words. So tags and words are aligned, as in
an edit distance: a tag that the training trees have for this word costs nothing, another one 1.5, a tag or a word that
is left alone 1.
"""

import collections

OTHER_TAG, ALONE = 1.5, 1.0
RARE = ""  # the entry of words that training does not have: the tags of those that it has once


def learn_tags(pairs):
    """Returns {word: its tags, most frequent first} of (word, tag) pairs; the entry "" is for all other words."""
    counts = collections.defaultdict(collections.Counter)
    for word, tag in pairs:
        counts[word][tag] += 1
    once = collections.Counter(next(iter(tags)) for tags in counts.values() if tags.total() == 1)
    return {RARE: _by_count(once)} | {word: _by_count(tags) for word, tags in sorted(counts.items())}


def align(tags, words, known):
    """Returns (tag or None, word or None) pairs in order, at the least cost; of equal ones the first pairs the most.

    Args:
        tags: list of str.
        words: list of str.
        known: what `learn_tags` returns; {}: nothing is known, and what is too many stays alone at the end.
    """
    allowed = [set(known.get(word, known.get(RARE, ()))) for word in words]
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


def cost(pairs, known):
    """Returns what an alignment costs, float; arguments as `align` returns and takes them."""
    return sum(
        ALONE if tag is None or word is None else OTHER_TAG * (tag not in known.get(word, known.get(RARE, ())))
        for tag, word in pairs
    )


def _by_count(tags):
    return [tag for tag, _ in sorted(tags.items(), key=lambda item: (-item[1], item[0]))]
