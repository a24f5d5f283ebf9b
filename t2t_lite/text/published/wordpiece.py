"""Reads WordPiece vocabularies, such as BERT's (Devlin et al. 2019), from the published `vocab.txt`.

A text is normalized one character at a time and split at spaces and around punctuation. Each word is spelled from the
left, always with the longest piece that fits. A word that cannot be spelled is one unknown token. Vocabularies cannot
be learned here. The ids are those of Hugging Face's `BertWordPieceTokenizer`.
"""

import itertools
import json

from t2t_lite import files
from t2t_lite.errors import UserError, shown
from t2t_lite.text.encoder_parts import WordCache, lines_of, longest_pieces, read_content
from t2t_lite.text.published import published_encoder
from t2t_lite.text.published.pre_tokenization import normalization
from t2t_lite.text.published.published_encoder import PublishedEncoder
from t2t_lite.text.vocabulary import tf_joined

ENDING = "vocab.txt"
_SCHEMA = dict.fromkeys(
    ("do_lower_case?", "strip_accents?", "tokenize_chinese_chars?", "do_basic_tokenize?"), bool | None
)
LONGEST_WORD = 100  # a word with more characters is unknown
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_RESERVED = ("[PAD]", "[SEP]", "[UNK]")  # the pieces for padding, end of sentence and unknown words


class WordPieceEncoder(PublishedEncoder):
    """Encodes text with a `vocab.txt` of one piece per line; pieces that continue a word begin with `##`.

    Args:
        path: path of the file, on any file system that `tf.io.gfile` supports.
        lower: whether text is converted to lower case and loses its accents. If None, `do_lower_case` in the
            `tokenizer_config.json` next to the file decides. Without this entry, text is converted to lower case if no
            piece has a capital letter.

    Attributes:
        lower: bool.
        spellings: list of str by id, the pieces with which words are spelled.

    Raises:
        UserError: the file does not exist, a piece is repeated, [UNK] or [SEP] is missing, or the configuration
            requires an unsupported normalization.

    Example:
        >>> encoder = WordPieceEncoder("bert/vocab.txt")                                         # doctest: +SKIP
        >>> encoder.pieces(encoder.encode("Unaffable, isn't it?"))                               # doctest: +SKIP
        ['una', '##ffa', '##ble', ',', 'isn', "'", 't', 'it', '?']
    """

    def __init__(self, path, lower=None):
        content = read_content(path)
        published = _read_pieces(content, path)
        special = {token for token in SPECIAL_TOKENS if token in published}
        is_lower = not any(token != token.lower() for token in published if token not in special)
        lower = _configured_lower(path) if lower is None else lower
        self.lower = is_lower if lower is None else lower
        added = published_encoder.beyond(
            published_encoder.read_settings(path.removesuffix(ENDING)), published, special, path
        )
        tokens = special | {token.content for token in added}
        reserved = [token if token in tokens else None for token in _RESERVED]
        super().__init__(path, {ENDING: content}, published, reserved, special, added, self.lower)
        # The settings that an exported `tokenizer_config.json` needs because the pieces do not show them.
        config = {"do_lower_case": self.lower} if self.lower != is_lower else {}
        if config := config | published_encoder.as_settings(added):
            self.contents[published_encoder.CONFIG] = json.dumps(config).encode()
        # The pieces that spell words, without added tokens, which are matched first.
        self.spellings = [f"[{i}]" if i in self.added_ids else token for i, token in enumerate(self.tokens)]
        self._ids = {token: i for i, token in enumerate(self.spellings)}
        self._longest = max(map(len, self.spellings))
        self._words = WordCache(self._encode_word)

    @property
    def tokenizer(self):
        """See `PublishedEncoder`."""
        return {"tokenizer_class": "BertTokenizer", "do_lower_case": self.lower}

    def tf_encode_part(self, strings):
        """See `PublishedEncoder.tf_encode_part`."""
        from t2t_lite.text.published import wordpiece_graph

        return wordpiece_graph.encode(strings, self.spellings, self.lower, LONGEST_WORD)

    def tf_decode(self, ids):
        """Decodes int32 [batch, length] to string [batch] in a graph."""
        import tensorflow as tf

        return tf.strings.regex_replace(tf_joined(ids, self.tokens, separator=" "), " ##", "")

    def encode_part(self, text):
        """See `PublishedEncoder.encode_part`."""
        words = text.translate(normalization(self.lower)).split(" ")
        return list(itertools.chain.from_iterable(self._words[word] for word in words if word))

    def _encode_word(self, word):
        """Returns the ids of the longest pieces that spell a word from the left, or the unknown id if none do."""
        ids = longest_pieces(word, self._ids, self._longest, "##") if len(word) <= LONGEST_WORD else None
        return [self.unknown_id] if ids is None else ids

    def _join(self, ids):
        return " ".join(map(self.tokens.__getitem__, ids)).replace(" ##", "")


def _configured_lower(path):
    """Returns `do_lower_case` from the `tokenizer_config.json`, or None if the file has no such entry."""
    path = path.removesuffix(ENDING) + published_encoder.CONFIG
    config = files.read_json(path, _SCHEMA) if files.exists(path) else {}
    lower = config.get("do_lower_case")
    for name, expected in (("strip_accents", lower), ("tokenize_chinese_chars", True), ("do_basic_tokenize", True)):
        if config.get(name) not in (None, expected):
            raise UserError(
                f"{path}: {name}={config[name]} with do_lower_case={lower} is not supported; only BERT's own "
                f"normalization is. Remove {name}."
            )
    return lower


def _read_pieces(content, path):
    pieces, places = [line.rstrip() for line in lines_of(content, path, "one piece per line")], {}
    for number, piece in enumerate(pieces, 1):
        if not piece or piece in places:
            fault = f"{shown(piece)} is also on line {places[piece]}" if piece else "empty"
            raise UserError(f"{path}: line {number}: {fault}. Expected one piece per line, each once.")
        places[piece] = number
    for token in ("[UNK]", "[SEP]"):
        if token not in places:
            raise UserError(f"{path}: no {token} among {len(pieces):,} pieces. Expected the vocab.txt of a BERT model.")
    return pieces
