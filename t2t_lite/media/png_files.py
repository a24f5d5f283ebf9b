"""PNG files: images of one size, and grids of them."""

import os

import numpy as np

from t2t_lite import files
from t2t_lite.errors import UserError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLORS = {1: "grey", 3: "RGB"}


def read_png(path):
    """Returns the pixels of a PNG, uint8 [rows, columns, 1 (grey) or 3 (RGB)].

    Raises:
        UserError: the file is missing, no PNG, cut off, or has an alpha channel.
    """
    import tensorflow as tf

    data = files.read_bytes(path)
    if not data.startswith(_SIGNATURE):
        raise UserError(f"{path}: is no PNG. Expected an image that is saved as PNG.")
    try:
        image = tf.io.decode_png(data).numpy()
    except tf.errors.InvalidArgumentError:
        raise UserError(f"{path}: damaged or cut off. Copy it again.") from None
    if image.shape[2] not in COLORS:
        raise UserError(f"{path}: has an alpha channel. Expected grey or RGB.")
    return image


def png_bytes(image):
    """Returns uint8 pixels [rows, columns, channels] as the bytes of a PNG."""
    import tensorflow as tf

    return tf.io.encode_png(image).numpy()


def check_size(path, found, expected, source):
    """Raises `UserError` unless an image has the size (height, width, channels) of `source`, for the message."""
    if tuple(found) != tuple(expected):
        raise UserError(f"{path}: is {shown_size(found)}. Expected {shown_size(expected)}, {source}.")


def shown_size(size):
    """Returns a size (height, width, channels) for messages: 28x28, grey."""
    height, width, *channels = size
    return f"{width}x{height}, {COLORS.get(*channels, 'of other channels') if len(channels) == 1 else 'no channels'}"


def class_of(path):
    """Returns the name of the folder that a file is in, which may be that of its class."""
    return os.path.basename(os.path.dirname(path))


def read_upper_halves(path, encoders):
    """Returns what is to be completed of PNGs, lists of ids: a class, and the upper half of an image.

    Args:
        path: str, a PNG, which may be a grid of images without borders; or a folder of PNGs, read in the order of their
            paths, those of a class in a folder with its name.
        encoders: {"targets": ImageEncoder}.

    Raises:
        UserError: as `read_png`, or an image has another size.
    """
    encoder = encoders["targets"]
    height, width, channels = encoder.size
    prompts = []
    for name in files.find_files(path, (".png",)) if files.is_folder(path) else [path]:
        image = read_png(name)
        if image.shape[0] % height or image.shape[1] % width or image.shape[2] != channels:
            raise UserError(
                f"{name}: is {shown_size(image.shape)}. Expected images of {shown_size(encoder.size)}, one or a grid."
            )
        label = class_of(name) if class_of(name) in encoder.class_labels else ""
        for row in range(0, image.shape[0], height):
            for column in range(0, image.shape[1], width):
                upper = image[row : row + encoder.half, column : column + width]
                prompts.append(encoder.encode(label) + encoder.encode_image(upper))
    return prompts


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
