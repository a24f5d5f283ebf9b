"""Problems for the published image sets MNIST, Fashion-MNIST and CIFAR-10, with tensor2tensor's names.

The images are read from files in `tmp_dir`, which may be compressed, or from a set that tensorflow-datasets has
prepared. If there is neither, the images are downloaded. The published test set is used as the dev set.
docs/extras/images.md has examples.
"""

import types

from t2t_lite.corpora import downloads, source_files
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.extras.images import png_files
from t2t_lite.extras.images.image_own import ImageProblem
from t2t_lite.registry import register_problem

_IN_PREPARED = {DatasetSplit.TRAIN: "train", DatasetSplit.EVAL: "test"}


class PublishedImages(ImageProblem):
    """Base class of problems whose images come from published files.

    Attributes:
        prepared_dataset: str, the name of the set in tensorflow-datasets.
        image_files: {split: {pattern of file names: URL}}.
    """

    prepared_dataset = ""
    image_files = types.MappingProxyType({})

    def prepare_generation(self, data_dir, tmp_dir):
        """Finds the image files, or downloads them."""
        if not self._prepared(tmp_dir):
            named = {name: url for split_files in self.image_files.values() for name, url in split_files.items()}
            downloads.provide([[url, ("text", name)] for name, url in named.items()], tmp_dir)
        super().prepare_generation(data_dir, tmp_dir)

    def generate_images(self, data_dir, tmp_dir, dataset_split):
        """Yields the images of a split as (image, name of its class)."""
        if folder := self._prepared(tmp_dir):
            pairs = _read_prepared(folder, _IN_PREPARED[dataset_split], self.image_size)
        else:
            named = self.image_files[dataset_split].items()
            pairs = self.read(*(source_files.find_texts(tmp_dir, name, url) for name, url in named))
        for image, number in pairs:
            if number >= len(self.class_labels):
                most = len(self.class_labels) - 1
                raise UserError(f"{self.name}: an image has class {number}. Expected 0 to {most}.")
            yield image, self.class_labels[number]

    def read(self, *sources):
        """Yields (image, class number); `sources` contains an iterable of files for each pattern of a split."""
        raise NotImplementedError

    def _prepared(self, tmp_dir):
        return downloads.find_prepared(self.prepared_dataset, [*_IN_PREPARED.values()], tmp_dir)


def _read_prepared(folder, split, size):
    """Yields (uint8 pixels [rows, columns, channels], class number) from a split of a prepared set.

    Args:
        folder, split: as for `downloads.read_prepared`.
        size: (rows, columns, channels), the expected size of the images.

    Raises:
        UserError: the set does not have images of this size, or a file is damaged.
    """
    builder = downloads.prepared_builder(folder)
    features = builder.info.features
    has_both = hasattr(features, "keys") and {"image", "label"} <= {*features.keys()}
    if not has_both or tuple(features["image"].shape) != tuple(size):
        raise UserError(
            f"{folder}: does not contain images of {size[0]}x{size[1]}x{size[2]} with labels. Expected the features "
            "image and label."
        )
    for image, label in downloads.prepared_examples(builder, folder, split, ("image", "label")):
        yield image, int(label)


def _idx_files(folder):
    """Returns `image_files` for a published set in MNIST's format."""
    kinds = ("images-idx3-ubyte", "labels-idx1-ubyte")
    names = {
        split: [f"{tag}-{kind}" for kind in kinds] for split, tag in zip(_IN_PREPARED, ("train", "t10k"), strict=True)
    }
    return {split: {f"{name}*": f"{folder}/{name}.gz" for name in split_names} for split, split_names in names.items()}


@register_problem
class ImageMnist(PublishedImages):
    """MNIST: handwritten digits, 28x28 pixels, grey."""

    image_size = (28, 28, 1)
    class_labels = tuple("0123456789")
    prepared_dataset = "mnist"
    image_files = _idx_files("https://storage.googleapis.com/cvdf-datasets/mnist")

    def read(self, *sources):
        """See `PublishedImages`; reads a file of images and a file of labels."""
        return png_files.read_idx_pairs(*(next(iter(members)) for members in sources))


@register_problem
class ImageFashionMnist(ImageMnist):
    """Fashion-MNIST: clothes, 28x28 pixels, grey (class names: README of zalandoresearch/fashion-mnist)."""

    class_labels = (
        "T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    )  # fmt: skip
    prepared_dataset = "fashion_mnist"
    image_files = _idx_files("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com")


@register_problem
class ImageCifar10PlainGen(PublishedImages):
    """CIFAR-10: photographs of ten classes, 32x32 pixels, RGB (Krizhevsky 2009)."""

    image_size = (32, 32, 3)
    class_labels = (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    )  # fmt: skip
    prepared_dataset = "cifar10"
    image_files = types.MappingProxyType(
        {
            split: {f"cifar-10-batches-bin/{name}.bin": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"}
            for split, name in ((DatasetSplit.TRAIN, "data_batch_*"), (DatasetSplit.EVAL, "test_batch"))
        }
    )

    def read(self, sources):
        """See `PublishedImages`; reads files that contain images with their labels."""
        for source in sources:
            yield from png_files.read_cifar(source, self.image_size)


@register_problem
class ImageCifar10PlainGenBlocks(ImageCifar10PlainGen):
    """CIFAR-10 in blocks of 16x16 values, as imagetransformer2d_base needs them."""

    image_blocks = (16, 16)
