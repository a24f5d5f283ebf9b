"""Checks what a problem's generators return."""

import collections.abc

from t2t_lite.errors import UserError, shown


def generated(samples, what, expected):
    """Returns `samples`. Raises `UserError` if a method returned something else, such as None for lack of a `yield`.

    Args:
        samples: the result of the method.
        what: str, the name of the method.
        expected: str, a description of a sample.
    """
    if isinstance(samples, str | bytes | collections.abc.Mapping) or not isinstance(samples, collections.abc.Iterable):
        raise UserError(
            f"{what} returned {shown(samples)}. Expected a generator or a list of {expected}: `yield` each sample."
        )
    return samples
