"""PNG files: images of one size, and grids of them; the binary files of MNIST (idx) and CIFAR-10."""

import logging
import math
import os
import unicodedata
from typing import NamedTuple

import numpy as np

from t2t_lite import files
from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError, counted

_LOGGER = logging.getLogger("t2t_lite")
COLORS = {1: "grey", 3: "RGB"}
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ALPHA = 4  # a bit of the colour type
_SRGB_GAMMA, _TOLERANCE = 45455, 2273  # 1 / 2.2 in units of 1 / 100,000; 5 % of it
_BYTES = 0x08  # idx's code for unsigned bytes


def read_png(path, sample_bits=None):
    """Returns the pixels of a PNG, uint8 [rows, columns, 1 (grey) or 3 (RGB)], as stored: no gamma is applied.

    Args:
        path: str.
        sample_bits: int, how many of the 16 bits of a 16-bit PNG hold data: see `find_sample_bits`. These samples are
            scaled to 8 bits and rounded. None: 16, unless the image looks as if it had fewer.

    Raises:
        UserError: the file is missing, no PNG, cut off, an animation, has transparency, or its samples do not fit into
            `sample_bits`.
    """
    data = files.read_bytes(path)
    if not data.startswith(SIGNATURE):
        raise UserError(f"{path}: is no PNG. Expected an image that is saved as PNG.")
    header, samples = read_header(data), _decoded(data)
    if samples is None:
        raise UserError(f"{path}: damaged or cut off. Copy it again.")
    if header.has_alpha:
        raise UserError(f"{path}: has an alpha channel. Expected grey or RGB.")
    if header.has_transparency:
        raise UserError(f"{path}: has a transparent colour. Expected grey or RGB without transparency.")
    if header.frames > 1:
        raise UserError(f"{path}: is an animation of {header.frames:,} frames. Expected a PNG for each frame.")
    return samples if samples.dtype == np.uint8 else _eight_bits(path, samples, sample_bits)


def find_sample_bits(paths):
    """Returns how many bits the samples of 16-bit PNGs hold, told by the largest: 8, 10, 12, 14 or 16.

    Cameras and scanners store 12 bits as 0 to 4,095 in 16. A single dark image looks the same, so the images of a
    corpus are judged together; a message says the result. PNGs that cannot be read are skipped.

    Returns:
        int, or None if no PNG has 16-bit samples.
    """
    contents = ((path, files.read_bytes(path)) for path in paths)
    deep = ((path, _decoded(data)) for path, data in contents if read_header(data).bits == 16)
    bits_of = {path: _bits_of(samples.max()) for path, samples in deep if samples is not None}
    if not bits_of:
        return None
    bits = max(bits_of.values())
    _LOGGER.info(f"PNGs of 16 bits are read as {bits} bits: {2**bits - 1:,} is white")
    fewer = [path for path in bits_of if bits_of[path] < bits]
    if 2 * len(fewer) > len(bits_of):
        _LOGGER.warning(
            f"{len(fewer):,} of {len(bits_of):,} PNGs of 16 bits have no sample above {2 ** (bits - 2) - 1:,}, such as "
            f"{fewer[0]}, but {max(bits_of, key=bits_of.get)} does: all are scaled alike. Check that they are."
        )
    return bits


def warn_of_colors(paths):
    """Logs a warning if some PNGs have a gamma or a colour profile of their own, which `read_png` does not apply."""
    own = [path for path in paths if read_header(files.read_bytes(path)).has_own_colors]
    if own:
        _LOGGER.warning(
            f"{own[0]}{f' and {len(own) - 1:,} more' if own[1:] else ''}: not sRGB (gAMA, iCCP or cICP). The samples "
            "are read as they are stored."
        )


def _decoded(data):
    """Returns the samples of a PNG, uint16 if it has 16 bits and else uint8, or None if it is damaged."""
    import tensorflow as tf

    try:
        return tf.io.decode_png(data, dtype=tf.uint16 if read_header(data).bits == 16 else tf.uint8).numpy()
    except tf.errors.InvalidArgumentError:
        return None


def _bits_of(largest):
    bits = int(largest).bit_length()
    return max(8, bits + bits % 2)


def _eight_bits(path, samples, sample_bits):
    largest = int(samples.max())
    if sample_bits is None and largest > 0 and (bits := _bits_of(largest)) < 16:
        raise UserError(
            f"{path}: its 16-bit samples are at most {largest:,}, so they may hold only {bits} bits; no training image "
            f"has 16 to compare with. Expected samples up to 65,535: multiply by {2 ** (16 - bits)}, or save 8 bits."
        )
    white = 2 ** (sample_bits or 16) - 1
    if largest > white:
        raise UserError(
            f"{path}: has a sample of {largest:,}. Expected at most {white:,}: the training images hold {sample_bits} "
            "bits."
        )
    return np.rint(samples * (255 / white)).astype(np.uint8)


def png_bytes(image):
    """Returns uint8 pixels [rows, columns, channels] as the bytes of a PNG."""
    import tensorflow as tf

    return tf.io.encode_png(image).numpy()


def check_samples(source, image):
    """Raises `UserError` unless an image's array has integers from 0 to 255; `source` is for the message."""
    if image.dtype != np.uint8 and (image.dtype.kind not in "ui" or image.min() < 0 or image.max() > 255):
        raise UserError(
            f"{source} has {image.dtype} samples from {image.min():.6g} to {image.max():.6g}. Expected integers from 0 "
            "to 255."
        )


def check_size(path, found, expected, source):
    """Raises `UserError` unless an image has the size (height, width, channels) of `source`, for the message."""
    if tuple(found) != tuple(expected):
        raise UserError(f"{path}: is {shown_size(found)}. Expected {shown_size(expected)}, {source}.")


def shown_size(size):
    """Returns a size (height, width, channels) for messages: 28x28, grey."""
    height, width, *channels = size
    return f"{width}x{height}, {COLORS.get(*channels, 'of other channels') if len(channels) == 1 else 'no channels'}"


def class_of(path, folders=()):
    """Returns the name of an image's class, that of the folder directly below the given one, as in `ImageFolder`.

    torchvision's `ImageFolder` does the same. An image directly in a given folder has the name of that folder.

    Args:
        path: str, an image.
        folders: list of str, the folders that were given; one that is in none of them was given by itself.
    """
    inside = [folder for folder in folders if path.startswith(os.path.join(folder, ""))]
    folder = max(inside, key=len, default=os.path.dirname(path))
    name, *below = path.removeprefix(os.path.join(folder, "")).split("/")
    return unicodedata.normalize("NFC", name if below else os.path.basename(os.path.abspath(folder)))


def read_upper_halves(path, encoders):
    """Returns prompts for the completion of images, as lists of ids: the class and the upper half of each image.

    Args:
        path: str, a PNG, which may be a grid of images without borders; or a folder of PNGs, read in the order of their
            paths, those of a class in a folder with its name.
        encoders: {"targets": ImageEncoder}.

    Raises:
        UserError: as `read_png`, or an image has another size.
    """
    encoder = encoders["targets"]
    height, width, channels = encoder.size
    folders = [path] if files.is_folder(path) else []
    names = files.find_files(path, (".png",)) if folders else [path]
    warn_of_colors(names)
    if folders and encoder.class_labels:
        _warn_of_classes(path, names, encoder.class_labels)
    prompts = []
    for name in names:
        image = read_png(name, encoder.sample_bits)
        if image.shape[0] % height or image.shape[1] % width or image.shape[2] != channels:
            raise UserError(
                f"{name}: is {shown_size(image.shape)}. Expected images of {shown_size(encoder.size)}, one or a grid."
            )
        label = class_of(name, folders)
        label = label if label in encoder.class_labels else ""
        for row in range(0, image.shape[0], height):
            for column in range(0, image.shape[1], width):
                upper = image[row : row + encoder.half, column : column + width]
                prompts.append(encoder.encode(label) + encoder.encode_image(upper))
    return prompts


def _warn_of_classes(folder, names, class_labels):
    """Logs a warning if a folder has folders that are none of the classes."""
    labels = {class_of(name, [folder]) for name in names}
    if unknown := sorted(labels - {class_of(os.path.join(folder, "_"), [folder]), *class_labels}):
        _LOGGER.warning(
            f"{folder}: its {counted(len(unknown), 'folder')} {', '.join(unknown)} "
            f"{'are' if unknown[1:] else 'is'} no class: these images are completed without one. Expected names such "
            f"as {class_labels[0]}."
        )


def write_grid(path, answers, encoders):
    """Returns {path: PNG} of a grid without borders: a row for each input, with its outputs, best first.

    Args:
        path: str.
        answers: list of (input: a text or a list of ids, of which each output is the rest; list of outputs' ids).
        encoders: {"targets": ImageEncoder}.
    """
    encoder = encoders["targets"]
    most = max((len(outputs) for _, outputs in answers), default=0)
    if not most:
        raise UserError(f"{path}: there is no image to write. Expected inputs, one per line.")
    rows = []
    for given, outputs in answers:
        given = given if isinstance(given, list) else []
        images = [encoder.decode_image([*given, *ids]) for ids in outputs]
        blank = [np.zeros(encoder.size, np.uint8)] * (most - len(images))
        rows.append(np.concatenate(images + blank, axis=1))
    return {path: png_bytes(np.concatenate(rows))}


class PngHeader(NamedTuple):
    """The facts about a PNG that its decoded pixels no longer show.

    Attributes:
        bits: int, per sample: 1, 2, 4, 8 or 16.
        has_alpha: bool, whether there is an alpha channel.
        has_transparency: bool, whether a colour, or entries of the palette, are transparent.
        frames: int, more than 1 for an animation.
        has_own_colors: bool, whether viewers convert the samples, by a gamma or profile other than sRGB's.
    """

    bits: int
    has_alpha: bool
    has_transparency: bool
    frames: int
    has_own_colors: bool


def read_header(data):
    """Returns the `PngHeader` of a PNG's bytes; chunks that are missing or cut off count as empty."""
    chunks, at = {}, len(SIGNATURE)
    while (name := data[at + 4 : at + 8]) not in (b"IDAT", b""):
        length = int.from_bytes(data[at : at + 4])
        chunks[name] = data[at + 8 : at + 8 + length]
        at += 12 + length
    bits, color_type = chunks.get(b"IHDR", b"").ljust(13, b"\0")[8:10]
    gamma = int.from_bytes(chunks.get(b"gAMA", b"")) or _SRGB_GAMMA
    is_converted = b"iCCP" in chunks or abs(gamma - _SRGB_GAMMA) > _TOLERANCE
    return PngHeader(
        bits=bits,
        has_alpha=bool(color_type & _ALPHA),
        has_transparency=b"tRNS" in chunks,
        frames=int.from_bytes(chunks.get(b"acTL", b"\0\0\0\1")[:4]),
        has_own_colors=b"cICP" in chunks or (is_converted and b"sRGB" not in chunks),
    )


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
