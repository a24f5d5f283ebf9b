"""Images <-> ids."""

import hashlib
import json

import numpy as np

from t2t_lite.errors import UserError, shown
from t2t_lite.text.vocabulary import UNK_ID, TextEncoder

_VALUES = 256


class ImageEncoder(TextEncoder):
    """Ids of the classes and the pixels of images of one size.

    0 is padding, 1 the end, 2 an image whose class is not known; then each class has an id, and each channel 256, so
    that channels have embeddings of their own. Pixels are in the order of rows, columns, channels; or in blocks one
    after the other, and inside of each in that order. As a text, an image is the name of its class; pixels are shown as
    numbers, with a space between them, in the order of their ids.

    Args:
        size: (height, width, channels); channels: 1 (grey) or 3 (RGB).
        class_labels: list of str, names of the classes; empty if there are none.
        blocks: (rows, columns) of a block, where the columns of channels count each; None: no blocks.
        sample_bits: how many of the 16 bits of 16-bit PNGs hold data, which is for their reader; None: not known.

    Raises:
        UserError: the image cannot be cut into such blocks.
    """

    num_reserved_ids = 3

    def __init__(self, size, class_labels=(), blocks=None, sample_bits=None):
        self.size, self.blocks = tuple(size), blocks and tuple(blocks)
        self.sample_bits = sample_bits
        self._order = self._places()
        self.class_labels = list(class_labels)
        self._first = self.num_reserved_ids + len(self.class_labels)  # id of a pixel's value 0
        super().__init__(self._first + _VALUES * self.size[2])

    @property
    def fingerprint(self):
        """SHA-256 (hex) of the size and the classes, and of the blocks."""
        blocks = [self.blocks] if self.blocks else []
        return hashlib.sha256(json.dumps([self.size, self.class_labels, *blocks]).encode()).hexdigest()

    @property
    def half(self):
        """The number of rows of an upper half, in whole blocks: an image's first ids are those of these rows."""
        rows = self.blocks[0] if self.blocks else 1
        return self.size[0] // 2 // rows * rows

    def _places(self):
        """Returns the places of pixels, counted by rows, columns and channels, in the order of their ids."""
        height, width, channels = self.size
        places = np.arange(self.length)
        if not self.blocks:
            return places
        rows, columns = self.blocks
        if height % rows or width * channels % columns:
            raise UserError(
                f"blocks of {rows} x {columns}: do not divide an image of {height} rows and {width} x {channels} "
                "columns. Expected divisors."
            )
        places = places.reshape(height // rows, rows, width * channels // columns, columns)
        return places.swapaxes(1, 2).reshape(-1)

    @property
    def length(self):
        """The number of pixels' ids in an image."""
        return int(np.prod(self.size))

    def encode(self, text):
        """Returns the list of the one id of a class; of a blank text that of an image of unknown class."""
        label = text.strip()
        if label and label not in self.class_labels:
            known = f"one of {', '.join(self.class_labels)}, or a blank line" if self.class_labels else "a blank line"
            raise UserError(f"{shown(label)} is no class of these images. Expected {known}.")
        return [self.num_reserved_ids + self.class_labels.index(label) if label else UNK_ID]

    def encode_image(self, image):
        """Returns the ids of uint8 pixels [rows, columns, channels]; of an image's first rows of blocks, too."""
        ids = (self._first + np.arange(self.size[2]) * _VALUES + image).reshape(-1)
        return ids[self._order[: len(ids)]].tolist()

    def decode_image(self, ids):
        """Returns uint8 [height, width, channels] of ids, of which those of classes are left out; the rest is black."""
        pixels = [(i - self._first) % _VALUES for i in ids if i >= self._first][: self.length]
        image = np.zeros(self.length, np.uint8)
        image[self._order[: len(pixels)]] = pixels
        return image.reshape(self.size)

    def count_pixels(self, ids):
        """Returns how many of ids are of pixels, each channel counted."""
        return sum(i >= self._first for i in ids)

    def _piece(self, i):
        if i < self._first:
            return "<unk>" if i == UNK_ID else self.class_labels[i - self.num_reserved_ids]
        return str((i - self._first) % _VALUES)

    def tf_encode(self, strings):
        """In a graph: string [batch] -> int32 ragged [batch, 1]; what is no class has the id of an unknown one."""
        import tensorflow as tf

        found = tf.strings.strip(strings)[:, None] == tf.constant([*self.class_labels, ""])[None]
        known = tf.argmax(tf.cast(found, tf.int32), axis=1, output_type=tf.int32) + self.num_reserved_ids
        ids = tf.where(tf.reduce_any(found[:, :-1], axis=1), known, UNK_ID)
        return tf.RaggedTensor.from_tensor(ids[:, None])

    def tf_decode(self, ids):
        """In a graph: int32 [batch, length] -> string [batch], the values of the pixels."""
        import tensorflow as tf

        ids = tf.ragged.boolean_mask(ids, (ids >= self._first) & (ids < self.vocab_size))
        values = tf.strings.as_string((ids - self._first) % _VALUES)
        return tf.strings.reduce_join(values, axis=-1, separator=" ")
