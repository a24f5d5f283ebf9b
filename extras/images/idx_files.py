"""The binary files of MNIST (idx) and CIFAR-10."""

import math

import numpy as np

from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError

_BYTES = 0x08  # idx's code for unsigned bytes


def read_idx(source, rank):
    """Returns the uint8 array of an idx file, which may be packed.

    Args:
        source: path, or an `archives.Member`.
        rank: int, the expected number of axes: 3 of images, 1 of labels.

    Raises:
        UserError: the file is missing, damaged, cut off, or no idx file of that rank.
    """
    data = _bytes(source)
    if data[:4] != bytes([0, 0, _BYTES, rank]) or len(data) < 4 + 4 * rank:
        raise UserError(f"{source}: is no idx file of bytes with {rank} dimensions. Copy it again.")
    shape = tuple(np.frombuffer(data, ">u4", rank, 4).tolist())
    expected = 4 + 4 * rank + math.prod(shape)
    if len(data) != expected:
        raise UserError(f"{source}: {len(data):,} bytes, {expected:,} by its head: cut off or damaged. Copy it again.")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def read_idx_pairs(images, labels):
    """Yields (uint8 pixels [rows, columns, 1], number of the class) of two idx files. Raises `UserError` as above."""
    pixels, numbers = read_idx(images, 3), read_idx(labels, 1)
    if len(pixels) != len(numbers):
        raise UserError(f"{images} has {len(pixels):,} images, {labels} {len(numbers):,} labels. Expected as many.")
    for image, number in zip(pixels, numbers.tolist(), strict=True):
        yield image[..., None], number


def read_cifar(source, size):
    """Yields (uint8 pixels [rows, columns, channels], number of the class) of a binary file of CIFAR-10.

    Args:
        source: path, or an `archives.Member`.
        size: (rows, columns, channels).

    Raises:
        UserError: the file is missing, damaged or cut off.
    """
    data, length = _bytes(source), 1 + math.prod(size)
    if not data or len(data) % length:
        raise UserError(f"{source}: {len(data):,} bytes, no multiple of {length:,}: cut off or damaged. Copy it again.")
    height, width, channels = size
    for row in np.frombuffer(data, np.uint8).reshape(-1, length):
        yield row[1:].reshape(channels, height, width).transpose(1, 2, 0), int(row[0])


def _bytes(source):
    with plain_text.naming_errors(source), plain_text.open_binary(source) as file:
        return file.read()
