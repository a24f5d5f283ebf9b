"""What all layers require of their arguments."""

import numbers


def check_sizes(**sizes):
    """Raises `ValueError` for a size that is given (not None) and no whole number of at least 1."""
    for name, size in sizes.items():
        if size is not None and (not isinstance(size, numbers.Integral) or isinstance(size, bool) or size < 1):
            raise ValueError(f"`{name}` must be a whole number of at least 1: received {name}={size!r}.")


def check_rates(**rates):
    """Raises `ValueError` for a dropout rate outside [0, 1)."""
    for name, rate in rates.items():
        if not isinstance(rate, numbers.Real) or not 0 <= rate < 1:
            raise ValueError(f"`{name}` must be a rate in [0, 1): received {name}={rate!r}.")
