"""Encoders whose pieces overlap, so that a string is spelled in many ways."""

from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder, learn_byte_level_bpe
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import ByteTextEncoder, SentencePieceEncoder, TextEncoder, TokenTextEncoder

LINES = ["a ab aba b ba bab cab abc", "the small world of a ship", "größe der welt"] * 20


class Letters(TextEncoder):
    """Pieces that overlap, so that a string is spelled in many ways and crosses pieces."""

    piece_bytes = (b"", b"", b"a", b"b", b"ab", b"aab", b"ba", b"c", b"bc", b"ca", b"d")

    def __init__(self):
        super().__init__(len(self.piece_bytes))

    def encode(self, text):
        return [self.piece_bytes.index(letter.encode()) for letter in text]

    def _join(self, ids):
        return "".join(map(self._piece, ids))

    def _piece(self, i):
        return self.piece_bytes[i].decode()


def encoders(folder):
    train_sentencepiece(LINES, str(folder / "sp"), 300)
    (folder / "words").write_text("<pad>\n<EOS>\na\nab\nba\nb\n", encoding="utf-8")
    learn_byte_level_bpe(LINES, str(folder / "vocab.json"), 300)
    return {
        "letters": Letters(),
        "bytes": ByteTextEncoder(),
        "words": TokenTextEncoder(str(folder / "words")),
        "sentencepiece": SentencePieceEncoder(str(folder / "sp.model")),
        "byte_level_bpe": ByteLevelBPEEncoder(str(folder / "vocab.json")),
    }
