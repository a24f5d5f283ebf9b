"""Mirrors tensor2tensor's data_generators/text_encoder.py, except that id 2 is reserved for unknown text."""

import re
import tempfile

from t2t_lite import files
from t2t_lite.errors import NotWritten, UserError
from t2t_lite.extras.tensor2tensor import names_elsewhere
from t2t_lite.extras.tensor2tensor.subword_text_encoder import SubwordTextEncoder as SubwordTextEncoder
from t2t_lite.text import vocabulary
from t2t_lite.text.class_label_encoder import ClassLabelEncoder as ClassLabelEncoder
from t2t_lite.text.class_label_encoder import RealEncoder as RealEncoder
from t2t_lite.text.vocabulary import EOS_ID as EOS_ID
from t2t_lite.text.vocabulary import PAD_ID as PAD_ID
from t2t_lite.text.vocabulary import ByteTextEncoder as ByteTextEncoder

PAD, EOS = "<pad>", "<EOS>"
RESERVED_TOKENS = [PAD, EOS, "<unk>"]  # a problem's additional_reserved_tokens have the next ids
RESERVED_TOKENS_BYTES = [token.encode() for token in RESERVED_TOKENS]
NUM_RESERVED_TOKENS = len(RESERVED_TOKENS)
__getattr__ = names_elsewhere(__name__)


class TextEncoder(vocabulary.TextEncoder):
    """The base class of a user's encoders, which define `encode`, `decode` and the property `vocab_size`.

    Args:
        num_reserved_ids: int, the number of ids that are not text, including padding and EOS.
    """

    def __init__(self, num_reserved_ids=vocabulary.TextEncoder.num_reserved_ids):
        self.num_reserved_ids = self._num_reserved_ids = num_reserved_ids  # subclasses may read either

    @property
    def vocab_size(self):
        """The number of ids."""
        raise NotWritten(
            f"{type(self).__name__}: define vocab_size, or use t2t_lite.text.vocabulary.TextEncoder(vocab_size)."
        )


class TokenTextEncoder(vocabulary.TokenTextEncoder):
    """Encodes whole words, which are listed in a file or in `vocab_list`; see `t2t_lite.text.vocabulary`.

    Args:
        vocab_filename: path of a file whose first two lines are padding and EOS, or None.
        reverse: must be False, because exports cannot reverse words.
        vocab_list: list of str, the words without padding and EOS; used instead of a file.
        replace_oov: see `t2t_lite.text.vocabulary.TokenTextEncoder`.
        num_reserved_ids: ignored; the ids of padding and EOS are reserved.
    """

    def __init__(self, vocab_filename, reverse=False, vocab_list=None, replace_oov=None, num_reserved_ids=None):
        if reverse:
            raise UserError("TokenTextEncoder: reverse=True is not supported. Reverse the words in generate_samples.")
        if vocab_list is None:
            super().__init__(vocab_filename, replace_oov)
            return
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            words = [word for word in vocab_list if word not in (PAD, EOS)]
            if len({*words}) < len(words) or re.search("[\r\n]", "".join(words)):
                raise UserError("TokenTextEncoder: vocab_list: expected different words without line breaks.")
            file.writelines(f"{word}\n" for word in (PAD, EOS, *words))
            file.flush()
            super().__init__(file.name, replace_oov)
        self.path = None

    def store_to_file(self, filename):
        """Writes the words to a file, one per line, from which the encoder can be created again."""
        files.write_bytes(filename, self._file)


def native_to_unicode(text):
    """Returns a str unchanged, because every str in Python 3 is Unicode; decodes bytes as UTF-8."""
    return text.decode() if isinstance(text, bytes) else text


to_unicode = to_unicode_utf8 = unicode_to_native = native_to_unicode
