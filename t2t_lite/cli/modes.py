"""A command's modes as a table: which flags each of them reads and needs, and what it does."""

import typing
from collections.abc import Callable, Mapping
from types import MappingProxyType

from t2t_lite.errors import UserError


class Mode(typing.NamedTuple):
    """One of the things that a command does.

    Attributes:
        name: str, how a user asks for it, for messages.
        reads: names of the flags that this mode reads and some other one does not.
        needs: names of flags without which there is nothing to do.
        run: function that does it, with the arguments that the command gives to all of its modes.
        instead: {name of a flag that it does not read: str, what to do instead}.
        asked: function of the flags that returns whether they ask for it.
        check: function of the flags that raises `UserError` for mistakes that can be seen without imports.
        others: None, or a function of the flags that checks them where they ask for another mode.
    """

    name: str
    reads: tuple = ()
    needs: tuple = ()
    run: Callable | None = None
    instead: Mapping = MappingProxyType({})
    asked: Callable | None = None
    check: Callable | None = None
    others: Callable | None = None


def chosen_mode(flags, modes):
    """Returns the Mode, of {key: Mode}, that the flags ask for: the first one, or the last, which is the usual one."""
    *others, usual = modes.values()
    return next((mode for mode in others if mode.asked(flags)), usual)


def check_mode(flags, mode, modes):
    """Raises `UserError` for flags that only other modes read, and for one that this mode needs and that is missing.

    Args:
        flags: absl's FlagValues.
        mode: the Mode that they ask for.
        modes: {key: Mode}, all of the command's.
    """
    of_others = {name for other in modes.values() for name in other.reads} - {*mode.reads}
    if unread := [name for name in flags if name in of_others and _asks(flags[name])]:
        readers = [other.name for other in modes.values() if {*unread} <= {*other.reads}]
        is_mode = any(f"--{name}" in readers for name in unread)
        only = f", only with {' or '.join(readers)}" if readers and not is_mode else ""
        instead = [f" {mode.instead[name]}" for name in unread if name in mode.instead]
        names = ", ".join(f"--{name}" for name in unread)
        it = "it" if len(unread) == 1 else "them"
        raise UserError(f"{names}: not with {mode.name}{only}. Leave {it} out.{''.join(instead)}")
    require(flags, *mode.needs)


def require(flags, *names):
    """Raises `UserError` when one of the flags has no value; the message says what each is for."""
    missing = [f"--{name} ({flags[name].help.rstrip('.')})" for name in names if flags[name].value in (None, "", [])]
    if missing:
        *others, last = missing
        raise UserError(f"missing {', '.join(others)}{' and ' if others else ''}{last}.")


def _asks(flag):
    """Whether a flag is given, and not to say that nothing is asked for: --flag=, --noflag."""
    return flag.present and flag.value not in ("", [], None) and bool(flag.value or flag.value != flag.default)
