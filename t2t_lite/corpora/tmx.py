"""Translation memories (`.tmx`): `<tu>` with a `<seg>` for each language."""

import re

from t2t_lite.corpora import plain_text, sgml
from t2t_lite.errors import UserError

_UNIT = re.compile(r"<tu\b([^>]*)>", re.IGNORECASE)


def read_pairs(source):
    """Yields {"inputs": str, "targets": str} for every unit: its first segment, its second one.

    As in tensor2tensor it is the order that counts, not the languages that the file names, and entities are decoded.

    Args:
        source: as `plain_text.read_lines`.

    Raises:
        UserError: as `sgml.scan_segments`; or a unit that has not two segments.
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
