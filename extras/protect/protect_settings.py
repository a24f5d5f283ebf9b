"""The setting `--protect` of translate_own."""

from t2t_lite.errors import UserError
from t2t_lite.extras.protect.protected_texts import KINDS, MOST_NUMBERS, kind_and_number
from t2t_lite.problems.own_settings import OwnSetting, are_strings, declare_settings


class ProtectSetting(OwnSetting):
    """The setting that lists the kinds of protected texts."""

    def checked(self, values):
        """Returns the checked kinds, see `protection.check_kinds`."""
        from t2t_lite.extras.protect.protection import check_kinds

        return check_kinds(values)

    def substitution(self, value):
        """Returns the `Protection` for a list of kinds, or None if the list is empty."""
        from t2t_lite.extras.protect.protection import protection_of

        return protection_of(tuple(value or ()))


def _are_kinds(words):
    try:
        return are_strings(words) and all(map(kind_and_number, words))
    except UserError:
        return False


declare_settings(
    ProtectSetting(
        "protect",
        list,
        None,
        fixed=True,
        fits=_are_kinds,
        problems=("translate_own",),
        meaning=f"translate_own: kinds of texts that a translation keeps unchanged: {','.join(KINDS)}. The model sees "
        f"a symbol of the vocabulary instead of each text. A kind has 10 symbols; a number after a colon changes this, "
        f"as in placeholders:30 (at most {MOST_NUMBERS}). Default: none.",
    )
)
