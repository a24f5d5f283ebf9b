"""Settings of generation that all problems share."""

import dataclasses
import os

from t2t_lite.settings.ranges import COUNT, SEED, Range, setting

# Each process takes some 600 MB.
_WORKERS = Range(1, max(16, 2 * (os.cpu_count() or 1)))


@dataclasses.dataclass(frozen=True)
class GenerationSettings:
    """Attributes of `Problem` that are flags of t2t-datagen."""

    max_cases: int = setting(0, limits=COUNT, meaning="Largest number of examples in a split; 0: all.")
    skip_bad_lines: bool = setting(
        False,
        meaning="Leave out lines that cannot be read, such as those that are not UTF-8 or lack a column, and count "
        "them.",
    )
    random_seed: int = setting(429459, limits=SEED, meaning="Seed of all that is drawn; equal seeds give equal files.")
    num_workers: int | None = setting(None, limits=_WORKERS, meaning="Processes that encode; default: one per core.")
