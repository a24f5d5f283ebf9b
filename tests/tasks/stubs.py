"""A vocabulary of words and a problem without data, for tests of tasks."""

from t2t_lite.data.problem import Problem

PIECES = ["<pad>", "<EOS>", "<unk>", "[MASK]", "red", "green", "house", "the"]


class Words:
    """Ids of words, in Python alone."""

    vocab_size = len(PIECES)

    def encode(self, text):
        """Returns an id per word."""
        return [PIECES.index(word) if word in PIECES else 2 for word in text.split()]

    def pieces(self, ids):
        """Returns the words."""
        return [PIECES[i] for i in ids]


class Texts(Problem):
    """Some texts per row."""

    name = "texts"

    def __init__(self, task, num_texts=1):
        super().__init__()
        self.task, self.num_texts = task, num_texts
