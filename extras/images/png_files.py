"""Reads and writes PNGs, which may be grids of images, and reads the binary files of MNIST (idx) and CIFAR-10."""

import math
import os
import unicodedata
from typing import NamedTuple

import numpy as np

from t2t_lite import files
from t2t_lite.corpora import plain_text
from t2t_lite.errors import LOGGER, UserError, counted

COLORS = {1: "grey", 3: "RGB"}
SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ALPHA = 4  # bit of the colour type that marks an alpha channel
_SRGB_GAMMA, _TOLERANCE = 45455, 2273  # the usual gamma, 1 / 2.2, in PNG's unit of 1 / 100,000, and a tolerance of 5 %
_BYTES = 0x08  # type code of unsigned bytes in idx files


def read_png(path, sample_bits=None):
    """Returns the pixels of a PNG as stored, without applying its gamma: uint8 [rows, columns, 1 (grey) or 3 (RGB)].

    Args:
        path: str.
        sample_bits: int, the number of bits that the samples of a 16-bit PNG use (see `find_sample_bits`). The samples
            are scaled to 8 bits and rounded. None means 16 bits; an image that seems to use fewer bits then raises an
            error.

    Raises:
        UserError: the file is missing, truncated, not a PNG, animated or transparent, or its samples do not fit into
            `sample_bits`.
    """
    data = files.read_bytes(path)
    if not data.startswith(SIGNATURE):
        raise UserError(f"{path}: is not a PNG. Expected an image saved as PNG.")
    header, samples = read_header(data), _decoded(data)
    if samples is None:
        raise UserError(f"{path}: damaged or truncated. Copy it again.")
    if header.has_alpha:
        raise UserError(f"{path}: has an alpha channel. Expected grey or RGB.")
    if header.has_transparency:
        raise UserError(f"{path}: has a transparent colour. Expected grey or RGB without transparency.")
    if header.frames > 1:
        raise UserError(f"{path}: is an animation with {header.frames:,} frames. Expected one PNG per frame.")
    return samples if samples.dtype == np.uint8 else _eight_bits(path, samples, sample_bits)


def find_sample_bits(paths):
    """Returns how many bits the samples of 16-bit PNGs use (8, 10, 12, 14 or 16), judging by the largest sample.

    Cameras and scanners store 12-bit samples as 0 to 4,095 in 16 bits. The samples of a dark 16-bit image may be in the
    same range, so all images of a corpus are judged together. The result is logged. PNGs that cannot be read are
    skipped.

    Returns:
        The number of bits, int, or None if no PNG has 16-bit samples.
    """
    contents = ((path, files.read_bytes(path)) for path in paths)
    headers = ((path, data, read_header(data)) for path, data in contents)
    # The alpha of an image without transparency is the largest number. `read_png` refuses such an image.
    deep = ((path, _decoded(data)) for path, data, header in headers if header.bits == 16 and not header.has_alpha)
    bits_of = {path: _bits_of(samples.max()) for path, samples in deep if samples is not None}
    if not bits_of:
        return None
    bits = max(bits_of.values())
    LOGGER.info(f"16-bit PNGs are read as {bits}-bit samples, in which {2**bits - 1:,} is white")
    fewer = [path for path in bits_of if bits_of[path] < bits]
    if 2 * len(fewer) > len(bits_of):
        LOGGER.warning(
            f"{len(fewer):,} of {len(bits_of):,} 16-bit PNGs, such as {fewer[0]}, have no sample above "
            f"{2 ** (bits - 2) - 1:,}, but {max(bits_of, key=bits_of.get)} has one. All PNGs are scaled from {bits} "
            "bits. Check that they use the same scale."
        )
    return bits


def warn_of_colors(paths):
    """Logs a warning if some PNGs have a gamma or a colour profile, which `read_png` does not apply."""
    with_colors = [path for path in paths if read_header(files.read_bytes(path)).has_own_colors]
    if with_colors:
        LOGGER.warning(
            f"{with_colors[0]}{f' and {len(with_colors) - 1:,} more' if with_colors[1:] else ''}: not sRGB (gAMA, iCCP "
            "or cICP). The samples are used as stored, without conversion."
        )


def _decoded(data):
    """Returns the samples of a PNG, uint16 if they have 16 bits and otherwise uint8, or None if the PNG is damaged."""
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
            f"{path}: the 16-bit samples are at most {largest:,}, so they may use only {bits} bits, and there is no "
            f"16-bit training image to compare with. Multiply the samples by {2 ** (16 - bits)}, or save 8-bit samples."
        )
    white = 2 ** (sample_bits or 16) - 1
    if largest > white:
        raise UserError(
            f"{path}: a sample is {largest:,}. Expected at most {white:,}, because the training images use "
            f"{sample_bits} bits."
        )
    return np.rint(samples * (255 / white)).astype(np.uint8)


def png_bytes(image):
    """Returns the bytes of a PNG with the given pixels, uint8 [rows, columns, channels]."""
    import tensorflow as tf

    return tf.io.encode_png(image).numpy()


def check_samples(source, image):
    """Raises `UserError` unless an array holds integers from 0 to 255; the message begins with `source`."""
    if image.dtype != np.uint8 and (image.dtype.kind not in "ui" or image.min() < 0 or image.max() > 255):
        raise UserError(
            f"{source} has {image.dtype} samples from {image.min():.6g} to {image.max():.6g}. Expected integers from 0 "
            "to 255."
        )


def check_size(path, size, expected, source):
    """Raises `UserError` unless an image has the expected (height, width, channels); the message ends with `source`."""
    if tuple(size) != tuple(expected):
        raise UserError(f"{path}: is {shown_size(size)}. Expected {shown_size(expected)}, {source}.")


def shown_size(size):
    """Returns (height, width, channels) as text for messages, such as "28x28, grey"."""
    if len(size) < 2:
        return f"an array of {counted(len(size), 'dimension')}"
    height, width, *channels = size
    return f"{width}x{height}, {COLORS.get(*channels, 'of other channels') if len(channels) == 1 else 'no channels'}"


def class_of(path, folders=()):
    """Returns the name of an image's class, which is the direct subfolder of a given folder.

    torchvision's `ImageFolder` does the same. For an image directly in a given folder, the class is this folder's name.

    Args:
        path: str, the path of an image.
        folders: list of str, the given folders. An image outside of these folders was given as a file.
    """
    inside = [folder for folder in folders if path.startswith(os.path.join(folder, ""))]
    folder = max(inside, key=len, default=os.path.dirname(path))
    name, *below = path.removeprefix(os.path.join(folder, "")).split("/")
    return unicodedata.normalize("NFC", name if below else os.path.basename(os.path.abspath(folder)))


def read_upper_halves(path, encoders):
    """Returns prompts for the completion of images, as lists of ids: the class and the upper half of each image.

    Args:
        path: str, a PNG, or a folder of PNGs that are read in the order of their paths. A PNG may be a grid of images
            without borders. The images of a class are in a folder with the name of the class.
        encoders: {"targets": ImageEncoder}.

    Raises:
        UserError: an image cannot be read (see `read_png`), or has another size.
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
                f"{name}: is {shown_size(image.shape)}. Expected one image or a grid of images of "
                f"{shown_size(encoder.size)}."
            )
        label = class_of(name, folders)
        label = label if label in encoder.class_labels else ""
        for row in range(0, image.shape[0], height):
            for column in range(0, image.shape[1], width):
                upper = image[row : row + encoder.half, column : column + width]
                prompts.append(encoder.encode(label) + encoder.encode_image(upper))
    return prompts


def _warn_of_classes(folder, names, class_labels):
    """Logs a warning if a folder has subfolders that are not named after classes."""
    labels = {class_of(name, [folder]) for name in names}
    if unknown := sorted(labels - {class_of(os.path.join(folder, "_"), [folder]), *class_labels}):
        LOGGER.warning(
            f"{folder}: {counted(len(unknown), 'subfolder')} ({', '.join(unknown)}) not named after a class. The "
            f"images there are completed without a class. Expected names such as {class_labels[0]}."
        )


def write_grid(path, answers, encoders):
    """Returns {path: bytes of a PNG}: a grid without borders; each row shows the outputs for one input, best first.

    Args:
        path: str.
        answers: list of (input, outputs). An input is a text or a list of ids; outputs are lists of ids, which continue
            the input's ids.
        encoders: {"targets": ImageEncoder}.

    Raises:
        UserError: there are no outputs.
    """
    encoder = encoders["targets"]
    most = max((len(outputs) for _, outputs in answers), default=0)
    if not most:
        raise UserError(f"{path}: there are no inputs, so there is no image to write. Expected one input per line.")
    rows = []
    for given, outputs in answers:
        given = given if isinstance(given, list) else []
        images = [encoder.decode_image([*given, *ids]) for ids in outputs]
        blank = [np.zeros(encoder.size, np.uint8)] * (most - len(images))
        rows.append(np.concatenate(images + blank, axis=1))
    return {path: png_bytes(np.concatenate(rows))}


class PngHeader(NamedTuple):
    """Properties of a PNG that cannot be seen in its decoded pixels.

    Attributes:
        bits: int, bits per sample: 1, 2, 4, 8 or 16.
        has_alpha: bool, whether the PNG has an alpha channel.
        has_transparency: bool, whether a colour or an entry of the palette is transparent.
        frames: int, more than 1 for an animation.
        has_own_colors: bool, whether viewers convert the samples because the PNG's gamma or profile differs from
            sRGB's.
    """

    bits: int
    has_alpha: bool
    has_transparency: bool
    frames: int
    has_own_colors: bool


def read_header(data):
    """Returns the `PngHeader` of a PNG's bytes; missing or truncated chunks count as empty."""
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
    """Returns the uint8 array of an idx file, which may be compressed.

    Args:
        source: path, or an `archives.Member`.
        rank: int, the expected number of axes: 3 for images, 1 for labels.

    Raises:
        UserError: the file is missing, damaged, truncated, or not an idx file of this rank.
    """
    data = _bytes(source)
    if data[:4] != bytes([0, 0, _BYTES, rank]) or len(data) < 4 + 4 * rank:
        raise UserError(f"{source}: is not an idx file of bytes with {counted(rank, 'dimension')}. Copy it again.")
    shape = tuple(np.frombuffer(data, ">u4", rank, 4).tolist())
    expected = 4 + 4 * rank + math.prod(shape)
    if len(data) != expected:
        raise UserError(
            f"{source}: has {len(data):,} bytes, but its header requires {expected:,}. Copy the file again."
        )
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def read_idx_pairs(images, labels):
    """Yields (uint8 pixels [rows, columns, 1], class number) from two idx files.

    Raises:
        UserError: a file cannot be read (see `read_idx`), or the files differ in length.
    """
    pixels, numbers = read_idx(images, 3), read_idx(labels, 1)
    if len(pixels) != len(numbers):
        raise UserError(
            f"{images} has {len(pixels):,} images, but {labels} has {len(numbers):,} labels. Expected equal numbers."
        )
    for image, number in zip(pixels, numbers.tolist(), strict=True):
        yield image[..., None], number


def read_cifar(source, size):
    """Yields (uint8 pixels [rows, columns, channels], class number) from a binary file of CIFAR-10.

    Args:
        source: path, or an `archives.Member`.
        size: (rows, columns, channels).

    Raises:
        UserError: the file is missing, damaged or truncated.
    """
    data, length = _bytes(source), 1 + math.prod(size)
    if not data or len(data) % length:
        raise UserError(
            f"{source}: truncated or damaged: {len(data):,} bytes are not a multiple of {length:,}. Copy it again."
        )
    height, width, channels = size
    for row in np.frombuffer(data, np.uint8).reshape(-1, length):
        yield row[1:].reshape(channels, height, width).transpose(1, 2, 0), int(row[0])


def _bytes(source):
    with plain_text.naming_errors(source), plain_text.open_binary(source) as file:
        return file.read()
