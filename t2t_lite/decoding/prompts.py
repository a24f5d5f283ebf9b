"""The prompts that a language model continues."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A prompt that was read.

    Attributes:
        text: str, as it was given.
        ids: list of int, at its end, that the model reads.
        truncated: bool, whether it has more ids.
    """

    text: str
    ids: list
    truncated: bool
