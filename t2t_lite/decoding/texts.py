"""Checks texts and ids passed by Python users, and forms batches of items; does not import NumPy."""

import numbers
from collections.abc import Sequence

from t2t_lite.errors import UserError, counted, located, nearest, shown
from t2t_lite.settings.ranges import DECODE_BATCH, typed_value
from t2t_lite.text.vocabulary import EOS_ID


def check_texts(texts, name="texts"):
    """Checks that a value is a list of texts, and returns a list of str, each valid Unicode.

    Args:
        texts: the user's value.
        name: str, the argument's name.

    Raises:
        TypeError: any other value, including a single str, which would otherwise be taken for a list of characters.
    """
    check_list(texts, name)
    return [check_text(text, number, name) for number, text in enumerate(texts)]


def check_list(texts, name="texts", items="str"):
    """Raises `TypeError` unless a value is iterable and not a str, which would be taken for a list of `items`."""
    if isinstance(texts, str | bytes | dict) or not hasattr(texts, "__iter__"):
        advice = " For one sentence: [text]." if isinstance(texts, str | bytes) and items == "str" else ""
        raise TypeError(f"`{name}` must be a list of {items}, received one {type(texts).__name__}.{advice}")


def each_located(what, function, *lists):
    """Calls a function for the items of one or more lists; error messages begin with `what` and the item's number."""
    results = []
    for number, items in enumerate(zip(*lists, strict=True), 1):
        with located(f"{what} {number}"):
            results.append(function(*items))
    return results


def prefix_list(prefixes, count):
    """Returns the user's prefixes as a list, one for each of `count` texts: each a str ("" for None), or a list of ids.

    Raises:
        TypeError: see `check_list`; also if a prefix is neither a str, None nor a list.
        UserError: the number of prefixes is not `count`.
    """
    check_list(prefixes, "prefixes")
    prefixes = list(prefixes)
    if len(prefixes) != count:
        raise UserError(f"{counted(count, 'text')}, but prefixes: {len(prefixes)}: expected one for each.")
    return [
        one if hasattr(one, "__len__") and not isinstance(one, str | bytes) else check_text(one or "", at, "prefixes")
        for at, one in enumerate(prefixes)
    ]


def check_text(text, number, name="texts"):
    """Returns item `number` of a list as valid Unicode. Raises `TypeError` unless it is a str."""
    if not isinstance(text, str):
        advice = " Decode it: .decode('utf-8')." if isinstance(text, bytes) else ""
        raise TypeError(f"`{name}`, item {number}: must be str, received {type(text).__name__}.{advice}")
    return valid_unicode(str(text))  # protocols and JSON reject subclasses of str such as NumPy's


def check_options(given, known, where):
    """Raises `TypeError` for an unknown argument; the message has the nearest known name.

    Args:
        given, known: names of arguments.
        where: str, the function's name.
    """
    for name in given:
        if name not in known:
            advice = nearest(name, known) or f"Expected one or more of {', '.join(known)}."
            raise TypeError(f"{where}() has no argument `{name}`. {advice}")


def valid_unicode(text):
    """Returns a text with lone surrogates, which UTF-8 cannot encode, replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def check_ids(ids, vocab_size, least=1):
    """Checks ids and returns them as a list of int.

    Args:
        ids: list, tuple or array of integers.
        vocab_size: int.
        least: int, the smallest id: 1 allows EOS, 2 does not.

    Raises:
        UserError: the value is not a list of integers, or an id is outside the vocabulary.
    """
    ids = _list_of_ids(ids)
    if wrong := [i for i in ids if not least <= i < vocab_size]:
        where = "is EOS, which may not occur inside a text" if wrong[0] == EOS_ID else "is outside the vocabulary"
        raise UserError(f"id {wrong[0]} {where}. Expected from {least} to {vocab_size - 1:,}.")
    return ids


def id_rows(inputs, vocab_size):
    """Returns the ids before EOS of each row, a list of lists of int.

    Raises:
        UserError: a row is not a list of integers, or an id is outside the vocabulary.
        TypeError: `inputs` is not a list.
    """
    check_list(inputs, "inputs", "lists of ids")
    rows = []
    for row, ids in enumerate(inputs):
        with located(f"inputs, row {row}"):
            ids = _list_of_ids(ids)
            rows.append(check_ids(ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids, vocab_size))
    return rows


def id_pairs(pairs, vocab_sizes):
    """Returns pairs of lists of int, the ids of a text and of its target, whose vocabularies have `vocab_sizes`.

    Raises:
        UserError: a pair is not a pair of lists of integers, or an id is outside its vocabulary.
        TypeError: `pairs` is not a list.
    """
    check_list(pairs, "pairs", "pairs of lists of ids")

    def checked(pair):
        if not hasattr(pair, "__len__") or len(pair) != 2:
            raise UserError(f"{shown(pair)}: expected the ids of a text and the ids of its target.")
        return [check_ids(ids, size) for ids, size in zip(pair, vocab_sizes, strict=True)]

    return each_located("pair", checked, pairs)


def _list_of_ids(ids):
    """Returns a list, tuple or array of integers as a list of int. Raises `UserError` for any other value."""
    import numpy as np

    items = np.asarray(ids).tolist() if hasattr(ids, "__array__") else ids
    is_list = isinstance(items, Sequence) and not isinstance(items, str | bytes)
    if not is_list or any(isinstance(i, bool) or not isinstance(i, numbers.Integral) for i in items):
        raise UserError(f"{shown(ids)}: expected a text or a list of ids (integers).")
    return [*map(int, items)]


def prefix_ids(encoder, prefix, longest_output, banned_texts=()):
    """Returns the ids of a prefix (a text or a list of ids) for an output of at most `longest_output` ids.

    Raises:
        UserError: the prefix has `longest_output` ids or more, an id is outside the vocabulary, or the prefix contains
            a banned text.
    """
    ids = encoder.encode(prefix) if isinstance(prefix, str) else check_ids(prefix, encoder.vocab_size, least=2)
    if len(ids) >= longest_output:
        raise UserError(
            f"the prefix has {len(ids):,} ids, but the output can have at most {longest_output - 1:,}. Shorten the "
            "prefix, or increase extra_length."
        )
    text = encoder.decode(ids) if banned_texts else ""
    for banned in banned_texts:
        if banned in text or (banned != " " and f" {text}".startswith(banned)):  # a space also stands for the beginning
            raise UserError(f"the prefix {shown(text)} contains {shown(banned)}, a banned text. Remove one of them.")
    return ids


def in_batches(items, size, length=len):
    """Yields batches of items of similar length, each a list of indices.

    Args:
        items: list.
        size: int, the maximum number of items in a batch, or a function of the batch's first item that returns this
            number.
        length: function of an item; the items are sorted by its results.

    Raises:
        UserError: the size is out of range (raised before the first batch).
    """
    most = size if callable(size) else typed_value("batch_size", size, int, DECODE_BATCH)
    order, start = sorted(range(len(items)), key=lambda at: length(items[at])), 0
    while start < len(order):
        end = start + (most(items[order[start]]) if callable(most) else most)
        yield order[start:end]
        start = end
