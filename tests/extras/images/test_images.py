"""MNIST's, Fashion-MNIST's and CIFAR-10's files, from `tmp_dir`, packed or not, or as a prepared set."""

import gzip
import io
import tarfile

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data.stored import read_examples


def images(count, size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, *size), np.uint8)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.tobytes()


def write_mnist(folder, pixels, labels):
    folder.mkdir(exist_ok=True)
    for tag in ("train", "t10k"):
        (folder / f"{tag}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pixels[..., 0])))
        (folder / f"{tag}-labels-idx1-ubyte").write_bytes(idx(np.array(labels, np.uint8)))


def write_cifar(folder, pixels, labels):
    rows = b"".join(
        bytes([label]) + image.transpose(2, 0, 1).tobytes() for image, label in zip(pixels, labels, strict=True)
    )
    with tarfile.open(folder / "cifar-10-binary.tar.gz", "w:gz") as archive:
        for name in ("data_batch_1.bin", "test_batch.bin"):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(rows)
            archive.addfile(member, io.BytesIO(rows))


def write_prepared(folder, pixels, labels, name="mnist"):
    pytest.importorskip("importlib_resources")  # tensorflow-datasets writes with it and forgets it
    info = {"image": tfds.features.Image(shape=pixels.shape[1:]), "label": tfds.features.ClassLabel(num_classes=10)}
    examples = tf.data.Dataset.from_tensor_slices({"image": pixels, "label": np.array(labels)})
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name, version="3.0.1", data_dir=str(folder), features=tfds.features.FeaturesDict(info),
        split_datasets={"train": examples, "test": examples}, disable_shuffling=True,
    )  # fmt: skip


@pytest.mark.parametrize("name, write, size", [
    ("image_mnist", write_mnist, (28, 28, 1)), ("image_fashion_mnist", write_mnist, (28, 28, 1)),
    ("image_cifar10_plain_gen", write_cifar, (32, 32, 3)), ("image_cifar10_plain_gen_blocks", write_cifar, (32, 32, 3)),
    ("image_mnist", write_prepared, (28, 28, 1)),
])  # fmt: skip
def test_images_are_those_of_the_files(name, write, size, tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "none"))
    pixels, labels = images(5, size), [1, 9, 0, 1, 3]
    write(tmp_path, pixels, labels)
    problem = registry.problem(name)
    problem.generate_data(str(tmp_path / "data"), str(tmp_path))
    encoder = problem.get_feature_encoders(str(tmp_path / "data"))["targets"]
    for split in ("train", "eval"):
        records = Records(problem, str(tmp_path / "data"), split)
        found = {
            (*row["inputs"], encoder.decode_image(row["targets"]).tobytes()) for row in read_examples(records.paths)
        }
        assert found == {(3 + label, image.tobytes()) for image, label in zip(pixels, labels, strict=True)}
        assert records.unit_counts()["dim"] == pixels.size
    assert [encoder.encode(label) for label in problem.class_labels] == [[3 + i] for i in range(10)]


def cut_off(folder):
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:-1]))


def longer(folder):
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"0"))


def cut_off_packed(folder):
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])


def no_idx(folder):
    (folder / "train-labels-idx1-ubyte").write_bytes(b"label\n")


def fewer_labels(folder):
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(3, np.uint8)))


def no_such_class(folder):
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(np.full(5, 10, np.uint8)))


def another_size(folder):
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images(5, (32, 32)))))


BAD = {
    cut_off: r"t10k-images-idx3-ubyte\.gz: 3,935 bytes, 3,936 by its head: cut off or damaged\. Copy it again\.",
    longer: r"t10k-images-idx3-ubyte\.gz: 3,937 bytes, 3,936 by its head: cut off or damaged",
    cut_off_packed: r"t10k-images-idx3-ubyte\.gz: damaged or not gz",
    no_idx: r"train-labels-idx1-ubyte: is no idx file of bytes with 1 dimensions",
    fewer_labels: r"has 5 images, .* 3 labels\. Expected as many\.",
    no_such_class: r"image_mnist: an image of class 10\. Expected 0 to 9\.",
    another_size: r"image_mnist: an image: is 32x32, grey\. Expected 28x28, grey",
}


@pytest.mark.parametrize("damage", BAD)
def test_damaged_files_are_named(damage, tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "none"))
    write_mnist(tmp_path, images(5, (28, 28, 1)), range(5))
    damage(tmp_path)
    with pytest.raises(UserError, match=BAD[damage]):
        registry.problem("image_mnist").generate_data(str(tmp_path / "data"), str(tmp_path))


def test_a_file_of_cifar_that_is_cut_off_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "none"))
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (folder / name).write_bytes(bytes(3072))
    with pytest.raises(UserError, match=r"data_batch_1\.bin: 3,072 bytes, no multiple of 3,073: cut off or damaged"):
        registry.problem("image_cifar10_plain_gen").generate_data(str(tmp_path / "data"), str(tmp_path))


def test_attention_to_blocks_is_for_images_in_blocks():
    hparams = registry.hparams("image_transformer2d_base")
    assert registry.problem("image_cifar10_plain_gen_blocks").model_hparams(hparams) == hparams
    with pytest.raises(UserError, match=r"local_2d sees an image's blocks, .* image_mnist are in the order of rows"):
        registry.problem("image_mnist").model_hparams(hparams)
