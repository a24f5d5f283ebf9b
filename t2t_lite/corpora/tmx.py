"""Reads translation memories (`.tmx`): units `<tu>` with one `<seg>` per language."""

import re

from t2t_lite.corpora import plain_text, sgml
from t2t_lite.errors import UserError

_UNIT = re.compile(r"<tu\b([^>]*)>", re.IGNORECASE)


def read_pairs(source):
    """Yields {"inputs": str, "targets": str} for every unit, from its first and second segment.

    As in tensor2tensor, the order of the segments counts, not the languages in the file. Entities are decoded.

    Args:
        source: as for `plain_text.read_lines`.

    Raises:
        UserError: as `sgml.scan_segments`, or if a unit does not have two segments.
    """
    unit, texts = 0, []
    for _, number, _, text in sgml.scan_segments(source, _UNIT):
        if number != unit and texts:
            yield _pair(source, unit, texts)
            texts = []
        unit = number
        texts.append(text)
    yield _pair(source, unit, texts)


def _pair(source, unit, texts):
    if len(texts) != 2:
        raise UserError(
            f"{source}: unit number {unit:,} has {len(texts)} segment{'s' * (len(texts) != 1)}. Expected 2."
        )
    return {"inputs": plain_text.clean(texts[0]), "targets": plain_text.clean(texts[1])}
