"""The problem `image_own`: generates and completes images like the user's own PNGs, which must all have the same size.

    t2t-datagen --problem=image_own --train_files=train --dev_files=dev --data_dir=D

Each path is a PNG or a folder of PNGs. As in torchvision's `ImageFolder`, each direct subfolder of a given folder is a
class, which contains all images below it. `D/image_own.json` stores all settings, so that later commands need only
`--data_dir=D`.
"""

import hashlib
import json
import math
import os
import types

import numpy as np

from t2t_lite import files, registry
from t2t_lite.corpora.plain_text import report
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.splits import full_path
from t2t_lite.errors import NotWritten, UserError, shown
from t2t_lite.extras.images import png_files
from t2t_lite.extras.images.png_files import check_size, class_of, find_sample_bits, read_png, warn_of_colors
from t2t_lite.problems.own_problem import OwnProblem, kept
from t2t_lite.problems.own_settings import OwnSetting, own_settings
from t2t_lite.settings.ranges import Range
from t2t_lite.tasks.task import LanguageModelTask
from t2t_lite.text.vocabulary import UNK_ID, TextEncoder

_VALUES = 256


class ImageEncoder(TextEncoder):
    """Encodes the class and the pixels of images that have the same size.

    Id 0 is padding, 1 the end, and 2 an unknown class. An id for each class follows, and then 256 ids for each channel,
    so that each channel has its own embeddings. Pixels are ordered by rows, columns and channels; with `blocks`, the
    blocks follow one another, and the pixels within each block have this order. The text of an image is the name of its
    class. Decoded pixels are shown as numbers in the order of their ids, separated by spaces.

    Args:
        size: (height, width, channels), with 1 channel (grey) or 3 (RGB).
        class_labels: list of str, the names of the classes; empty for images without classes.
        blocks: (rows, columns) of a block, or None for no blocks. Each channel of a pixel counts as a column.
        sample_bits: the number of bits that the samples of 16-bit PNGs use, or None if unknown; see `read_png`.

    Attributes:
        length: int, the number of ids for the pixels of an image.
        half: int, the number of rows in the upper half of an image, rounded to whole blocks; their ids come first.

    Raises:
        UserError: the image cannot be divided into blocks of this size.
    """

    num_reserved_ids = 3

    def __init__(self, size, class_labels=(), blocks=None, sample_bits=None):
        self.size, self.blocks = tuple(size), blocks and tuple(blocks)
        self.sample_bits = sample_bits
        self.length = math.prod(self.size)
        self._order = self._places()
        rows = self.blocks[0] if self.blocks else 1
        self.half = self.size[0] // 2 // rows * rows
        self.class_labels = list(class_labels)
        self._first = self.num_reserved_ids + len(self.class_labels)  # id of the pixel value 0
        super().__init__(self._first + _VALUES * self.size[2])

    @property
    def fingerprint(self):
        """The SHA-256 (hex) of the size, the classes and the blocks."""
        blocks = [self.blocks] if self.blocks else []
        return hashlib.sha256(json.dumps([self.size, self.class_labels, *blocks]).encode()).hexdigest()

    def _places(self):
        """Returns the index of each pixel in the flattened image, in the order of the ids."""
        height, width, channels = self.size
        places = np.arange(self.length)
        if not self.blocks:
            return places
        rows, columns = self.blocks
        if height % rows or width * channels % columns:
            raise UserError(
                f"image_blocks=({rows}, {columns}) does not divide an image of {height} rows and {width} x {channels} "
                "columns. Expected a divisor of the rows and a divisor of the columns."
            )
        places = places.reshape(height // rows, rows, width * channels // columns, columns)
        return places.swapaxes(1, 2).reshape(-1)

    def encode(self, text):
        """Returns [id of the class named `text`], or [id of the unknown class] if `text` is blank."""
        label = text.strip()
        if label and label not in self.class_labels:
            known = f"one of {', '.join(self.class_labels)}, or a blank line" if self.class_labels else "a blank line"
            raise UserError(f"{shown(label)} is not a class of these images. Expected {known}.")
        return [self.num_reserved_ids + self.class_labels.index(label) if label else UNK_ID]

    def encode_image(self, image):
        """Returns the ids of uint8 [rows, columns, channels], an image or only its first rows (whole blocks)."""
        ids = (self._first + np.arange(self.size[2]) * _VALUES + image).reshape(-1)
        return ids[self._order[: len(ids)]].tolist()

    def decode_image(self, ids):
        """Converts ids to an image uint8 [height, width, channels]. Class ids are skipped, missing pixels are black."""
        pixels = [(i - self._first) % _VALUES for i in ids if i >= self._first][: self.length]
        image = np.zeros(self.length, np.uint8)
        image[self._order[: len(pixels)]] = pixels
        return image.reshape(self.size)

    def count_pixels(self, ids):
        """Returns how many of the ids are pixel values; each pixel has one value per channel."""
        return sum(i >= self._first for i in ids)

    def _piece(self, i):
        if i < self._first:
            return "<unk>" if i == UNK_ID else self.class_labels[i - self.num_reserved_ids]
        return str((i - self._first) % _VALUES)

    def tf_encode(self, strings):
        """Encodes class names in a graph, string [batch] -> int32 ragged [batch, 1]; every unknown name gets id 2."""
        import tensorflow as tf

        is_label = tf.strings.strip(strings)[:, None] == tf.constant([*self.class_labels, ""])[None]
        known = tf.argmax(tf.cast(is_label, tf.int32), axis=1, output_type=tf.int32) + self.num_reserved_ids
        ids = tf.where(tf.reduce_any(is_label[:, :-1], axis=1), known, UNK_ID)
        return tf.RaggedTensor.from_tensor(ids[:, None])

    def tf_decode(self, ids):
        """Decodes ids in a graph, int32 [batch, length], to the pixel values as text, string [batch]."""
        import tensorflow as tf

        ids = tf.ragged.boolean_mask(ids, (ids >= self._first) & (ids < self.vocab_size))
        values = tf.strings.as_string((ids - self._first) % _VALUES)
        return tf.strings.reduce_join(values, axis=-1, separator=" ")


class ImageProblem(Problem):
    """Base class of problems whose images a language model learns pixel by pixel. Subclasses define `image_size` and
    `generate_images`.

    The `inputs` of an example are the id of its class, and its `targets` are the ids of all pixels, without an end (see
    `ImageEncoder`). Evaluations report the loss in bits per dimension, where each channel of a pixel is a dimension.

    Attributes:
        image_size: (height, width, channels), with 1 channel (grey) or 3 (RGB).
        class_labels: the names of the classes; empty for images without classes.
        image_blocks: (rows, columns) of the blocks into which pixels are grouped, as the attention `local_2d` needs;
            each channel of a pixel counts as a column. If None, pixels are ordered by rows.
        sample_bits: the number of bits that the samples of 16-bit PNGs use, such as 12. None means 16 bits; a PNG that
            seems to use fewer bits then raises an error.
        unknown_class_rate: share of the training images whose class is hidden, so that the model can also complete
            images of an unknown class.
    """

    features = types.MappingProxyType({"inputs": 2, "targets": 2})
    task = LanguageModelTask.name
    unit = "image"
    eval_decode_metric = None
    loss_metrics = ("bits_per_dim",)
    decode_defaults = types.MappingProxyType({"sampling": True})
    readers = types.MappingProxyType({"png": png_files.read_upper_halves})
    writers = types.MappingProxyType({"png": png_files.write_grid})
    targets_are_places = True
    class_labels = ()
    image_blocks = None
    sample_bits = None
    unknown_class_rate = 0.1

    @property
    def image_size(self):
        """The size of all images, (height, width, channels)."""
        raise NotWritten(f"{type(self).__name__}: define image_size.")

    def generate_images(self, data_dir, tmp_dir, dataset_split):
        """Yields (uint8 array of `image_size`, class name or "" if unknown)."""
        raise NotWritten(f"{type(self).__name__}: define generate_images.")

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": [id of the class], "targets": ids of the pixels}, and counts the pixels."""
        encoder = self.feature_encoders(data_dir)["targets"]
        for image, label in self.generate_images(data_dir, tmp_dir, dataset_split):
            png_files.check_size(f"{self.name}: an image", image.shape, encoder.size, "its image_size")
            png_files.check_samples(f"{self.name}: an image", image)
            self.unit_counts["dim"] += encoder.length
            yield {"inputs": encoder.encode(label), "targets": encoder.encode_image(image)}

    def feature_encoders(self, data_dir):
        """Returns a single `ImageEncoder` for both features, classes and pixels."""
        encoder = ImageEncoder(self.image_size, self.class_labels, self.image_blocks, self.sample_bits)
        return dict.fromkeys(self.features, encoder)

    def augment(self, batch, seeds):
        """Hides the classes of some images: see `unknown_class_rate`."""
        import tensorflow as tf

        from t2t_lite.data.random_numbers import uniform_numbers

        is_forgotten = uniform_numbers(seeds, 1, 1)[:, 0, :, 0] < self.unknown_class_rate
        return {**batch, "inputs": tf.where(is_forgotten, UNK_ID, batch["inputs"])}

    def model_hparams(self, hparams):
        """See `Problem.model_hparams`; raises `UserError` if the attention `local_2d` has other blocks."""
        from t2t_lite.layers.attention_kinds import spelled_kinds
        from t2t_lite.layers.layer_kinds import words_of

        kinds = hparams.self_attention_type
        if "local_2d" not in kinds:
            return super().model_hparams(hparams)
        if not self.image_blocks:
            raise UserError(
                f"self_attention_type={kinds}: local_2d needs images in blocks, but the pixels of {self.full_name} are "
                "ordered by rows. Expected local_1d, or a problem with image_blocks, such as "
                "image_cifar10_plain_gen_blocks."
            )
        (rows, columns), (_, width, channels) = self.image_blocks, self.image_size
        sizes = {"block_height": rows, "block_width": columns, "image_width": width * channels}
        settings = {name: hparams.get(name, size) for name, size in sizes.items()}
        for kind, options in words_of(spelled_kinds(kinds)):
            if "local_2d" not in kind.split("+"):
                continue
            block = {**settings, **options}
            if wrong := [name for name, size in sizes.items() if str(block[name]) != str(size)]:
                expected = ",".join(f"{name}={size}" for name, size in sizes.items())
                raise UserError(
                    f"{wrong[0]}={block[wrong[0]]}: the blocks of local_2d do not match the images of "
                    f"{self.full_name}. Expected --hparams={expected}, and no other sizes in self_attention_type."
                )
        return super().model_hparams(hparams)

    def example_length(self, encoders):
        """Returns the number of ids of an image and its class."""
        return 1 + encoders["targets"].length

    def given_part(self, given, encoders):
        """Returns the top part of the image: all rows that the input contains completely. See `Problem.given_part`."""
        height = encoders["targets"].size[0]
        rows = encoders["targets"].count_pixels(given) * height // encoders["targets"].length
        return (0, 0, 1, min(rows, height) / height) if rows else None

    @property
    def sequence_length(self):
        """The number of ids for the pixels of an image."""
        return math.prod(self.image_size)


def _are_sizes(size):
    return size is None or (isinstance(size, list) and len(size) == 3 and all(type(n) is int and n > 0 for n in size))


@registry.register_problem
class ImageOwn(OwnProblem, ImageProblem):
    """The problem `image_own`. Its images are the user's own PNGs, which are passed to `configure`."""

    settings = own_settings(
        "problem", "files", OwnSetting("folders", list, None), OwnSetting("image_size", list, None, fits=_are_sizes),
        OwnSetting("sample_bits", int, None, Range(8, 16)), OwnSetting("class_labels", list, None),
    )  # fmt: skip
    file_endings = (".png",)
    example_flags = "--train_files=train --dev_files=dev"
    expected_lines = "PNGs, or folders of them"
    sample_unit = "images"

    @property
    def image_size(self):
        """The size of the first training image, (height, width, channels)."""
        return tuple(self.determined("image_size"))

    sample_bits = kept(
        "sample_bits", "Number of bits that the samples of 16-bit training images use. None: no such images."
    )
    class_labels = kept("class_labels", "The sorted names of the classes; empty if there is only one class.", ())

    def check_settings(self, values, paths):
        """See `OwnProblem.check_settings`; also stores the given folders, which determine the classes."""
        super().check_settings(values, paths)
        values["folders"] = [full_path(path) for group in paths.values() for path in group if files.is_folder(path)]

    def check_corpus(self, data_dir, tmp_dir):
        """Finds the image size, the sample bits and the classes: see `OwnProblem.check_corpus`."""
        paths = self._paths(DatasetSplit.TRAIN)
        self._check_folders(paths)
        classes = sorted({*map(self._class_of, paths)})
        self.config["class_labels"] = classes if len(classes) > 1 else None
        self.config["sample_bits"] = find_sample_bits(paths)
        self.config["image_size"] = self._find_size(paths)
        warn_of_colors([path for split in self.config["files"] for path in self._paths(split)])
        super().check_corpus(data_dir, tmp_dir)

    def _check_folders(self, paths):
        """Raises `UserError` if a training image lies next to the class folders, or a class has no images."""
        for start in (os.path.join(folder, "") for folder in self._folders):
            inside = [path.removeprefix(start).split("/") for path in paths if path.startswith(start)]
            direct = [name for name, *below in inside if not below]
            classes = {name for name, *below in inside if below}
            if direct and classes:
                raise UserError(f"{start}{direct[0]}: is next to the class folders. Move it into one of them.")
            for path in files.list_files(start, r"[^.].*") if classes else ():
                if files.is_folder(path) and os.path.basename(path) not in classes:
                    raise UserError(f"{path}: this class folder contains no .png. Add images, or remove the folder.")

    def _find_size(self, paths):
        """Returns the size of the first image or, with `skip_bad_lines`, the size of the first readable image."""
        for path in paths:
            try:
                return list(read_png(path, self.sample_bits).shape)
            except UserError as error:
                if not self.on_bad_line:
                    raise
                mistake = error
        raise mistake

    def _paths(self, split):
        return [facts["path"] for facts in self.files_of(split)]

    _folders = kept("folders", "The given folders; earlier versions did not store them.", ())

    def _class_of(self, path):
        return class_of(path, self._folders)

    def generate_images(self, data_dir, tmp_dir, dataset_split):
        """Yields the images of a split as (image, class name)."""
        self.read_config(data_dir)
        first = f"as {self._paths(DatasetSplit.TRAIN)[0]}"
        for path in self._paths(dataset_split):
            label = self._class_of(path) if self.class_labels else ""
            try:
                image = read_png(path, self.sample_bits)
                check_size(path, image.shape, self.image_size, first)
                if label and label not in self.class_labels:
                    known = ", ".join(self.class_labels)
                    raise UserError(f"{path}: the training images do not have this class. Expected one of {known}.")
            except UserError as error:
                report(str(error), self.on_bad_line)
            else:
                yield image, label

    generate_samples = generate_images  # for `check_corpus`
