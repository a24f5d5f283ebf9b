"""A cache of the ids of words: most words of a text are frequent ones."""

_LONGEST_WORD = 64  # characters; longer ones are rare, and would fill the memory


class WordCache(dict):
    """Maps a word to its ids, which a function computes at the first lookup.

    Args:
        encode: a function of a word. It is pickled with the cache; the words are not.
        most: number of words at which the cache is emptied.
    """

    def __init__(self, encode, most=2**18):
        super().__init__()
        self._encode = encode
        self._most = most

    def __missing__(self, word):
        ids = self._encode(word)
        if len(word) <= _LONGEST_WORD:
            if len(self) >= self._most:
                self.clear()
            self[word] = ids
        return ids

    def __reduce__(self):
        return WordCache, (self._encode, self._most)
