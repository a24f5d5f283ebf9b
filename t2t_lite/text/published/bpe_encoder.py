"""The base class of encoders of published BPE vocabularies: a text is split into words, whose symbols are merged.

SentencePiece does the merging, in Python and in a graph. It has one rank per token instead of one per merge, which
gives the same tokens for all merges that BPE can learn; `bpe_files` refuses others.
"""

import itertools
import json

from t2t_lite.errors import UserError
from t2t_lite.text.encoder_parts import WordCache, read_content
from t2t_lite.text.published import added_tokens
from t2t_lite.text.published.bpe_files import ENDINGS, NEWLINE, files_of, read_vocabulary
from t2t_lite.text.published.published_encoder import PublishedEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID

_STANDARD = {"<s>", "<pad>", "</s>", "<unk>", "<mask>", "<|endoftext|>", NEWLINE}
_PADDINGS = ("<pad>", "[PAD]", "<|pad|>")  # added tokens, as of a GPT-2
END_TOKENS = ("</s>", "<|endoftext|>", NEWLINE)


class BPEEncoder(PublishedEncoder):
    """Ids of the vocabulary in two files.

    A subclass has `_split(text) -> words`, `_spelled(word) -> str`, one character per symbol, and `_spelled_tokens`.

    Args:
        path: path of `vocab.json` or `encoder.json`, or of a file with such an ending (`gpt2-vocab.json`). Its merges
            are in `merges.txt` or `vocab.bpe` beside it.
        symbols: see `read_vocabulary`.
        lower: whether text is lowercased.

    Raises:
        UserError: a file is missing or truncated, or merges and tokens do not match.
    """

    def __init__(self, path, symbols=None, lower=False):
        import sentencepiece

        paths = files_of(path)
        contents = {name: read_content(file) for name, file in paths.items()}
        published, ranks, special = read_vocabulary(contents, paths, symbols)
        end = next((token for token in END_TOKENS if token in special), None)
        if end is None:
            expected = " or ".join(END_TOKENS).replace("\n", r"\n")
            raise UserError(f"{path}: no token for the end of a text. Expected {expected}.")
        ending = next(ending for ending in ENDINGS if path.endswith(ending))
        settings = added_tokens.read_settings(path.removesuffix(ending))
        added = added_tokens.beyond(settings, published, special & _STANDARD, path)
        names = {token.content for token in added}
        padding = "<pad>" if "<pad>" in special else next((token for token in _PADDINGS if token in names), None)
        reserved = [padding, end, "<unk>" if "<unk>" in special | names else None]
        if added:
            contents[added_tokens.CONFIG] = json.dumps(added_tokens.as_settings(added)).encode()
        super().__init__(path, contents, published, reserved, special, added, lower)
        self._model = self._sentencepiece_model(ranks)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=self._model)
        self._words = WordCache(self._encode_word)

    @property
    def _tokenizer(self):
        """In a graph: the tokenizer that merges the symbols of spelled words."""
        import tensorflow as tf
        import tensorflow_text

        # Named as in SentencePieceEncoder, and not cached for the same reason.
        name = f"vocabulary_{self.fingerprint[:16]}"
        return tensorflow_text.SentencepieceTokenizer(model=self._model, out_type=tf.int32, name=name)

    def encode_part(self, text):
        """See `PublishedEncoder.encode_part`."""
        return list(itertools.chain.from_iterable(map(self._words.__getitem__, self._split(text))))

    def _encode_word(self, word):
        return self._processor.EncodeAsIds(self._spelled(word))

    def _is_special(self, i):
        return i <= UNK_ID or self.tokens[i] in self.special_ids

    def _is_added(self, i):
        return i in self.added_ids

    def _split(self, text):
        """Returns the words of a text."""
        raise NotImplementedError

    def _spelled(self, word):
        """Returns the symbols of a word, a character each."""
        raise NotImplementedError

    def _spelled_tokens(self):
        """Returns a list of str by id: the symbols of each token, or None if no text yields it."""
        raise NotImplementedError

    def _sentencepiece_model(self, ranks):
        """Returns the bytes of a SentencePiece BPE model with the same ids; `ranks`: {token: rank of its merge}."""
        from t2t_lite.text.sentencepiece_model import ModelProto

        model = ModelProto()
        kind, spec, rule = ModelProto.SentencePiece, model.trainer_spec, model.normalizer_spec
        for i, (token, symbols) in enumerate(zip(self.tokens, self._spelled_tokens(), strict=True)):
            if symbols is None:  # the space distinguishes its name from all words
                model.pieces.add(piece=f" {i}", type=kind.UNKNOWN if i == PAD_ID else kind.CONTROL)
            else:
                model.pieces.add(piece=symbols, score=-float(ranks.get(token, 0)), type=kind.NORMAL)
        spec.model_type, spec.vocab_size = spec.BPE, len(self.tokens)
        # SentencePiece joins unknown neighbors. Words are spelled without unknowns, so that padding can have their id.
        spec.pad_id, spec.eos_id, spec.unk_id, spec.bos_id = -1, EOS_ID, PAD_ID, -1
        spec.eos_piece, spec.unk_piece = (f" {i}" for i in (EOS_ID, PAD_ID))
        rule.add_dummy_prefix = rule.remove_extra_whitespaces = rule.escape_whitespaces = False
        return model.SerializeToString(deterministic=True)
