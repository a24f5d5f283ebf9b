"""Mirrors tensor2tensor's data_generators/text_encoder.py, except that id 2 is reserved for unknown text."""

from t2t_lite.extras.tensor2tensor.subword_text_encoder import SubwordTextEncoder as SubwordTextEncoder
from t2t_lite.text.class_label_encoder import ClassLabelEncoder as ClassLabelEncoder
from t2t_lite.text.class_label_encoder import RealEncoder as RealEncoder
from t2t_lite.text.vocabulary import EOS_ID as EOS_ID
from t2t_lite.text.vocabulary import PAD_ID as PAD_ID
from t2t_lite.text.vocabulary import ByteTextEncoder as ByteTextEncoder
from t2t_lite.text.vocabulary import TextEncoder as TextEncoder
from t2t_lite.text.vocabulary import TokenTextEncoder as TokenTextEncoder

PAD, EOS = "<pad>", "<EOS>"
RESERVED_TOKENS = [PAD, EOS]
NUM_RESERVED_TOKENS = len(RESERVED_TOKENS)


def native_to_unicode(text):
    """Returns the text unchanged, because every str in Python 3 is Unicode."""
    return text


to_unicode = unicode_to_native = native_to_unicode
