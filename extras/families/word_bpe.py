"""The vocabulary of the original GPT: BPE of lower-case words (Radford et al. 2018; Sennrich et al. 2016).

A text is normalized and split into words as for an uncased BERT. The symbols of a word are its characters, with `</w>`
appended to the last character. The ids equal those of Transformers' OpenAIGPTTokenizer if ftfy and spaCy are not
installed.
"""

import functools

from t2t_lite import registry
from t2t_lite.text.published.bpe_files import WORD_END, BPEEncoder
from t2t_lite.text.published.pre_tokenization import normalization
from t2t_lite.text.vocabulary import UNK_ID, tf_joined

# Symbols with `</w>` and unknown symbols are represented by private-use code points, which normalized texts do not
# contain.
_FIRST_LAST, _UNKNOWN = 0xF0000, 0x10FFFD


@registry.register_encoder("word_bpe")
class WordBPEEncoder(BPEEncoder):
    r"""Encodes texts with a BPE vocabulary whose tokens mark word ends. Case, accents and white space are lost.

    A character without a token becomes one unknown token. A line break, which Transformers' tokenizer never yields,
    ends a text.

    Args:
        path: str, see `BPEEncoder`, which also lists the errors.

    Example:
        >>> encoder = WordBPEEncoder("gpt/vocab.json")                                           # doctest: +SKIP
        >>> encoder.pieces(encoder.encode("It's a\n test"))                                      # doctest: +SKIP
        ['it</w>', "'</w>", 's</w>', 'a</w>', 'test</w>']
    """

    def __init__(self, path):
        super().__init__(path, lower=True)

    @property
    def tokenizer(self):
        """The fields of `tokenizer_config.json`: see `PublishedEncoder`."""
        return {"tokenizer_class": "OpenAIGPTTokenizer", "unk_token": self.tokens[UNK_ID]}

    def tf_encode_part(self, strings):
        """See `PublishedEncoder.tf_encode_part`."""
        import tensorflow as tf

        from t2t_lite.text.published import wordpiece_graph

        words = wordpiece_graph.split(strings, lower=True)
        codes = tf.strings.unicode_decode(words.flat_values, "UTF-8")  # ragged [words, (characters)]
        last = codes.row_splits[1:] - 1  # a word has at least one character
        inside = _looked_up(codes.flat_values, self._inside)
        ends = _looked_up(tf.gather(codes.flat_values, last), self._last)
        spelled = tf.tensor_scatter_nd_update(inside, last[:, None], ends)
        ids = self._tokenizer.tokenize(tf.strings.unicode_encode(codes.with_values(spelled), "UTF-8"))
        return words.with_flat_values(ids).merge_dims(1, 2)

    def tf_decode(self, ids):
        """Decodes ids in a graph, int32 [batch, length], to string [batch]."""
        import tensorflow as tf

        joined = tf_joined(ids, self.tokens)
        return tf.strings.regex_replace(tf.strings.regex_replace(joined, f"{WORD_END}$", ""), WORD_END, " ")

    def _split(self, text):
        return filter(None, text.translate(normalization(lower=True)).split(" "))

    def _spelled(self, word):
        inside = [self._inside.get(code, _UNKNOWN) for code in map(ord, word[:-1])]
        return "".join(map(chr, [*inside, self._last.get(ord(word[-1]), _UNKNOWN)]))

    def _spelled_tokens(self):
        spellings = []
        for i, token in enumerate(self.tokens):
            *inside, last = token.removesuffix(WORD_END) or " "
            if token.endswith(WORD_END):
                last = chr(self._last.get(ord(last), _UNKNOWN))
            spellings.append(None if self._is_special(i) or self._is_added(i) else "".join([*inside, last]))
        spellings[UNK_ID] = chr(_UNKNOWN)
        return spellings

    def _join(self, ids):
        return "".join(map(self.tokens.__getitem__, ids)).removesuffix(WORD_END).replace(WORD_END, " ")

    @functools.cached_property
    def _inside(self):
        """{code point: the same code point} for the characters that have a token inside a word."""
        return {
            ord(token): ord(token) for i, token in enumerate(self.tokens) if len(token) == 1 and not self._is_added(i)
        }

    @functools.cached_property
    def _last(self):
        """{code point of a character: code point that represents this character at the end of a word}."""
        symbols = (token.removesuffix(WORD_END) for token in self.tokens if token.endswith(WORD_END))
        return {ord(symbol): _FIRST_LAST + n for n, symbol in enumerate(s for s in symbols if len(s) == 1)}


def _looked_up(codes, table):
    """Looks up keys in a {int: int} inside a graph, int32 [n] -> int32 [n]; missing keys are mapped to `_UNKNOWN`."""
    import tensorflow as tf

    keys = sorted(table)
    values = tf.constant([table[key] for key in keys], tf.int32)
    keys = tf.constant(keys, tf.int32)
    at = tf.minimum(tf.searchsorted(keys, codes), tf.size(keys) - 1)
    return tf.where(tf.gather(keys, at) == codes, tf.gather(values, at), _UNKNOWN)
