"""The loss of a language model by word, character and byte, whatever its vocabulary."""

import math

UNITS = ("word", "character", "byte")
NAMES = (
    *(f"{what}_per_{unit}" for unit in UNITS[:2] for what in ("nats", "perplexity")),
    "bits_per_character",
    "bits_per_byte",
)


def text_metrics(nats, text):
    """Returns {name: float} of `NAMES`: what a loss is by word, character and byte of the text.

    Args:
        nats: float, the mean loss per id.
        text: {"ids", "words", "characters", "bytes"}: ints, counts of a text, ends included; a unit may be missing.
            Their ratios apply to a part of the text as well, as in tensor2tensor's tables.
    """
    per = {unit: nats * text["ids"] / text[f"{unit}s"] for unit in UNITS if text.get(f"{unit}s")}
    found = {}
    for unit, value in per.items():
        found[f"nats_per_{unit}"] = value
        found[f"perplexity_per_{unit}"] = math.exp(min(value, 80.0))
        found[f"bits_per_{unit}"] = value / math.log(2)
    return {name: found[name] for name in NAMES if name in found}
