"""Which operations of a LiteRT file its interpreter does not have."""

import re


def select_operations(path):
    """Returns the sorted names of TensorFlow's operations in a LiteRT file, such as "FlexRoll".

    Their names are strings of a FlatBuffer: four bytes with the length come before them, and a zero after them. (Read
    this way, no interpreter is needed, which is another package in each version of TensorFlow.)

    Args:
        path: str, a file that `keras.Model.export` has written.
    """
    with open(path, "rb") as file:
        data = file.read()
    named = re.finditer(rb"(....)(Flex[A-Z]\w*)\0", data, re.DOTALL)
    return sorted(
        {name.decode() for size, name in (m.groups() for m in named) if int.from_bytes(size, "little") == len(name)}
    )
