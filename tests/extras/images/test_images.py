"""MNIST's, Fashion-MNIST's and CIFAR-10's files, from `tmp_dir`, compressed or not, or as a prepared set."""

# Nearest tests of: extras/images/png_files.py

import gzip
import importlib.resources
import importlib.util
import io
import sys
import tarfile

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from t2t_lite import registry
from t2t_lite.corpora import downloads
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data.stored import read_examples

LABELS = {"train": [1, 9, 0, 1, 3], "test": [2, 8]}


def images(split, size):
    """Each split has images and labels of its own, of other numbers."""
    draw = np.random.default_rng(len(split))
    return draw.integers(0, 256, (len(LABELS[split]), *size), np.uint8), LABELS[split]


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.tobytes()


def write_mnist(folder, size=(28, 28, 1)):
    for split, tag in (("train", "train"), ("test", "t10k")):
        pixels, labels = images(split, size)
        (folder / f"{tag}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels[..., 0])))
        (folder / f"{tag}-labels-idx1-ubyte").write_bytes(idx(np.array(labels, np.uint8)))


def write_cifar(folder, size):
    parts = {
        "data_batch_1": ("train", slice(3)),
        "data_batch_2": ("train", slice(3, 5)),
        "test_batch": ("test", slice(2)),
    }
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for name, (split, part) in parts.items():
            rows = [bytes([label]) + image.transpose(2, 0, 1).tobytes()
                    for image, label in zip(*(every[part] for every in images(split, size)), strict=True)]  # fmt: skip
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            member.size = len(b"".join(rows))
            archive.addfile(member, io.BytesIO(b"".join(rows)))


def write_prepared(folder, size, name="mnist", key="image"):
    info = {key: tfds.features.Image(shape=size), "label": tfds.features.ClassLabel(num_classes=10)}
    splits = {split: dict(zip((key, "label"), images(split, size), strict=True)) for split in LABELS}
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name, version="3.0.1", data_dir=str(folder), features=tfds.features.FeaturesDict(info),
        split_datasets={split: tf.data.Dataset.from_tensor_slices(rows) for split, rows in splits.items()},
        disable_shuffling=True,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def no_prepared_sets_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "none"))
    if importlib.util.find_spec("importlib_resources") is None:  # tensorflow-datasets writes with it and forgets it
        monkeypatch.setitem(sys.modules, "importlib_resources", importlib.resources)


@pytest.mark.parametrize("name, write, size", [
    ("image_mnist", write_mnist, (28, 28, 1)), ("image_fashion_mnist", write_mnist, (28, 28, 1)),
    ("image_cifar10_plain_gen", write_cifar, (32, 32, 3)), ("image_cifar10_plain_gen_blocks", write_cifar, (32, 32, 3)),
    ("image_mnist", write_prepared, (28, 28, 1)),
])  # fmt: skip
def test_images_are_those_of_the_files(name, write, size, tmp_path):
    write(tmp_path, size)
    problem = registry.problem(name)
    problem.generate_data(str(tmp_path / "data"), str(tmp_path))
    encoder = problem.get_feature_encoders(str(tmp_path / "data"))["targets"]
    for split, published in (("train", "train"), ("eval", "test")):
        records = Records(problem, str(tmp_path / "data"), split)
        found = {
            (*row["inputs"], encoder.decode_image(row["targets"]).tobytes()) for row in read_examples(records.paths)
        }
        pixels, labels = images(published, size)
        assert found == {(3 + label, image.tobytes()) for image, label in zip(pixels, labels, strict=True)}
        assert records.unit_counts()["dim"] == pixels.size
    assert encoder.blocks == ((16, 16) if "blocks" in name else None)


ADDRESSES = {
    "image_mnist": ("mnist", "https://storage.googleapis.com/cvdf-datasets/mnist/{}.gz"),
    "image_fashion_mnist": ("fashion_mnist", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{}.gz"),
    "image_cifar10_plain_gen": ("cifar10", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"),
}
MNIST_FILES = [f"{tag}-{kind}-ubyte" for tag in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]


@pytest.mark.parametrize("name", ADDRESSES)
def test_what_is_not_there_is_downloaded_from_the_published_addresses(name, tmp_path, monkeypatch):
    """tensorflow-datasets, mnist/, fashion_mnist/ and cifar10/ of its catalog, has the names and the addresses."""
    asked, (prepared, address) = [], ADDRESSES[name]
    monkeypatch.setattr(downloads, "provide", lambda entries, tmp_dir: asked.extend(entries))
    problem = registry.problem(name)
    problem.prepare_generation(str(tmp_path), str(tmp_path))
    files = [f"{file}*" for file in MNIST_FILES] if "{}" in address else [
        "cifar-10-batches-bin/data_batch_*.bin", "cifar-10-batches-bin/test_batch.bin"
    ]  # fmt: skip
    assert asked == [[address.format(file[:-1]), ("text", file)] for file in files]
    assert problem.prepared_dataset == prepared


@pytest.mark.parametrize("case", [{"size": (28, 27, 1)}, {"size": (28, 28, 1), "key": "picture"}])
def test_a_prepared_set_of_something_else_is_refused(case, tmp_path):
    write_prepared(tmp_path, **case)
    with pytest.raises(UserError, match=r"mnist.*28x28x1"):
        registry.problem("image_mnist").generate_data(str(tmp_path / "data"), str(tmp_path))


TEST_IMAGES, TRAIN_LABELS = "t10k-images-idx3-ubyte.gz", "train-labels-idx1-ubyte"
BAD = {  # the file, its bytes from those before, the message
    "cut off": (TEST_IMAGES, lambda data: gzip.compress(gzip.decompress(data)[:-1]), r"\.gz.* 1,583 .* 1,584\b"),
    "longer": (TEST_IMAGES, lambda data: gzip.compress(gzip.decompress(data) + b"0"), r"\.gz.* 1,585 .* 1,584\b"),
    "cut off as packed": (TEST_IMAGES, lambda data: data[:-20], r"t10k-images-idx3-ubyte\.gz: damaged or not gz"),
    "no idx": (TRAIN_LABELS, lambda data: b"label\n", r"train-labels-idx1-ubyte.* idx .*1 dimension\b"),
    "of 16 bits": (TRAIN_LABELS, lambda data: bytes([0, 0, 11, 1]) + data[4:], "train-labels.* idx .*1 dimension"),
    "cut off in the head": (TRAIN_LABELS, lambda data: data[:7], "train-labels.* idx .*1 dimension"),
    "fewer labels": (TRAIN_LABELS, lambda data: idx(np.zeros(3, np.uint8)), "images-idx3.* 5 .*labels-idx1.* 3 "),
    "no such class": (TRAIN_LABELS, lambda data: idx(np.full(5, 10, np.uint8)), "image_mnist.* class 10.* 0 to 9"),
    "another size": (
        "train-images-idx3-ubyte.gz", lambda data: gzip.compress(idx(np.zeros((5, 32, 31), np.uint8))),
        "image_mnist.*31x32, grey.*28x28, grey.*image_size",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", BAD)
def test_damaged_files_are_named(damage, tmp_path):
    write_mnist(tmp_path)
    name, change, message = BAD[damage]
    (tmp_path / name).write_bytes(change((tmp_path / name).read_bytes()))
    with pytest.raises(UserError, match=message):
        registry.problem("image_mnist").generate_data(str(tmp_path / "data"), str(tmp_path))


@pytest.mark.parametrize("size", [3072, 0])
def test_a_file_of_cifar_that_is_cut_off_is_named(size, tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (folder / name).write_bytes(bytes(size))
    with pytest.raises(UserError, match=rf"data_batch_1\.bin.* {size:,} bytes.*3,073"):
        registry.problem("image_cifar10_plain_gen").generate_data(str(tmp_path / "data"), str(tmp_path))


def test_attention_to_blocks_is_for_images_in_blocks():
    hparams = registry.hparams("image_transformer2d_base")
    assert registry.problem("image_cifar10_plain_gen_blocks").model_hparams(hparams) == hparams
    with pytest.raises(UserError, match=r"self_attention_type=local_2d.*image_mnist"):
        registry.problem("image_mnist").model_hparams(hparams)


def test_blocks_of_attention_are_those_of_the_images():
    """The default of image_width is for an image of one channel."""
    problem = registry.problem("image_cifar10_plain_gen_blocks")
    hparams = registry.hparams("transformer_lm_base").parse("self_attention_type=local_2d")
    hparams = hparams.of_model(registry.model("transformer_lm"))
    expected = "block_height=16,block_width=16,image_width=96"
    with pytest.raises(UserError, match=rf"image_width=32.*image_cifar10_plain_gen_blocks.*--hparams={expected}"):
        problem.model_hparams(hparams)
    for right in (expected, "self_attention_type=local_2d(image_width=96)"):
        assert problem.model_hparams(hparams.parse(right)) == hparams.parse(right)
    for kinds, wrong in (
        ("local_2d(image_width=96;block_height=8)", "block_height=8"),
        ("local_2d(image_width=96)/local_2d", "image_width=32"),
        ("local_2d(image_width=96):local_2d(image_width=96;block_width=4)+dot_product", "block_width=4"),
        ('[{"type": "local_2d+dot_product", "block_width": 96, "image_width": 96}]', "block_width=96"),
    ):
        with pytest.raises(UserError, match=rf"{wrong}: the blocks"):
            problem.model_hparams(hparams.override_from_dict({"self_attention_type": kinds}))
