"""The reader of tensor2tensor's subwords: see `tests.files.readers`."""

from t2t_lite.extras.tensor2tensor.subword_text_encoder import SubwordTextEncoder
from tests.data import packing
from tests.files.readers import LINES_OF_A_VOCABULARY, Reader
from tests.text.published_samples import SUBWORDS

READERS = {
    "subwords": Reader(
        packing.lines(f"'{piece}'" for piece in [*SUBWORDS, "one"]),
        SubwordTextEncoder,
        LINES_OF_A_VOCABULARY | dict.fromkeys(("empty", "CR", "PDF", "zip"), "as line 1, expected"),
    )
}
DAMAGED = {
    "subwords": [
        ("v", "", ".*found '' as line 1, expected '<pad>_'"),
        ("v", "<pad>\nthe\n", ".*found 'the' as line 2, expected '<EOS>_'"),
        ("v", "<pad>\n<EOS>\nthe\n", ".* has no piece"),
        ("v", b"'<pad>_'\n'\xff'\n", ".*not UTF-8"),
        ("v", b"\x0a\x10\x05model", ".*found"),
    ]
}
