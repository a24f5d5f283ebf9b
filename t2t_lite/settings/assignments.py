"""The grammar of tensor2tensor's `--hparams` and `--decode_hparams`: `name=value,name=[1,2]`."""

import re

from t2t_lite.errors import UserError, shown


def parse_assignments(text, where):
    """Splits `name=value,name=[1,2]` into a dict of strings and lists of strings; blanks are ignored.

    Args:
        text: the assignments; "" gives {}.
        where: what to call the text in errors, such as "--decode_hparams".

    Raises:
        UserError: not of that form, or a name given twice.
    """
    found, rest = {}, text.strip()
    pattern = re.compile(r"\s*([A-Za-z][\w.]*)\s*=\s*(\[[^\]]*\]|[^,\[]*)\s*(?:,|$)")
    while rest:
        match = pattern.match(rest)
        if not match:
            raise UserError(f"{where}: cannot read {shown(rest)}. Expected name=value,name=value.")
        name, value = match[1], match[2].strip()
        if name in found:
            raise UserError(f"{where}: {shown(name)} is given twice.")
        if value.startswith("["):
            value = [item.strip() for item in value[1:-1].split(",") if item.strip()]
        found[name], rest = value, rest[match.end() :]
    return found
