"""Vocabularies with added tokens, and texts with these."""

import json
import pathlib

from tests.text.published_samples import PIECES

COVID, E1, ABC, ABCD = range(len(PIECES), len(PIECES) + 4)


PLAIN = {"special": False, "lstrip": False, "rstrip": False, "single_word": False}


ADDED = [
    PLAIN | {"content": "COVID", "normalized": True},
    PLAIN | {"content": "[E1]", "normalized": False, "special": True},
    PLAIN | {"content": "abc", "normalized": False},
    PLAIN | {"content": "abcd", "normalized": False},  # begins like one before it
]


TEXTS = [
    "the cafe",
    "",
    "COVID",
    "thecovids [E1]the [e1]",
    "abcABC a\u0301 covid [MASK]",
    "the abcdabc",
    "\ufdd0abc\ufdd0\ufdd1\ufdd2 \x00the",
]


def vocabulary(folder, write, **config):
    path = write(folder)
    first = len(PIECES) if path.endswith("txt") else len(json.loads(pathlib.Path(path).read_text()))
    settings = {str(first + n): facts for n, facts in enumerate(ADDED)}
    config = {"added_tokens_decoder": settings, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return path
