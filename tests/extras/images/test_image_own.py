"""The classes and the bits of the user's own PNGs."""

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.evaluation.metrics import metric_names, shown_metrics
from t2t_lite.extras.images.png_files import png_bytes
from t2t_lite.settings.config import HParams
from t2t_lite.tasks.task import unit_of
from tests.extras.images.pngs import deep
from tests.problems.own import check_what_is_not_found_yet


def write(folder, *names, content=None):
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content or png_bytes(np.full((1, 2, 1), number, np.uint8)))
    return str(folder)


def labels(tmp_path, train=("train",), dev="dev"):
    """Returns (the classes, the class of each training image in the order of their paths)."""
    problem = registry.problem("image_own")
    problem.configure(train_files=[str(tmp_path / name) for name in train], dev_files=[str(tmp_path / dev)])
    problem.check_corpus(str(tmp_path), str(tmp_path))
    images = problem.generate_images(str(tmp_path), str(tmp_path), DatasetSplit.TRAIN)
    return list(problem.class_labels), [label for _, label in images]


def test_classes_are_the_folders_below_the_given_one_as_of_torchvision(tmp_path):
    write(tmp_path / "train", "dog/b1/0.png", "cat/b1/0.PNG", "cat/b2/deep/1.png", "cat/2.png", "Ärger/0.png")
    write(tmp_path / "dev", "cat/b9/0.png", "dog/0.png")
    assert labels(tmp_path) == (["cat", "dog", "Ärger"], ["cat", "cat", "cat", "dog", "Ärger"])


def test_folders_in_several_parts_have_the_same_classes(tmp_path):
    write(tmp_path / "train1", "cat/b1/0.png", "dog/b1/0.png")
    write(tmp_path / "train2", "cat/b1/0.png")
    write(tmp_path / "more" / "dog", "0.png")
    write(tmp_path / "dev", "dog/0.png")
    assert labels(tmp_path, ["train1", "train2", "more/dog"]) == (["cat", "dog"], ["cat", "dog", "cat", "dog"])
    one_by_one = ["train1/cat/b1/0.png", "more/dog/0.png"]
    write(tmp_path / "named", "b1/0.png", "dog/0.png")
    assert labels(tmp_path, one_by_one, "named") == (["b1", "dog"], ["b1", "dog"]), "files are of their own folder"


def test_one_folder_is_no_class(tmp_path):
    write(tmp_path / "train", "0.png", "1.png")
    write(tmp_path / "dev", "0.png")
    assert labels(tmp_path) == ([], ["", ""])
    write(tmp_path / "nested", "cat/b1/0.png", "cat/b2/0.png")
    assert labels(tmp_path, ["nested"]) == ([], ["", ""])


def test_hidden_names_and_links_that_lead_back_are_left_out(tmp_path):
    write(tmp_path / "train", "cat/0.png", "cat/._0.png", ".ipynb_checkpoints/0.png", ".thumbs/cat/0.png")
    write(tmp_path / "elsewhere", "0.png")
    (tmp_path / "train" / "dog").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "train" / "cat" / "loop").symlink_to(tmp_path / "train")
    write(tmp_path / "dev", "dog/0.png")
    assert labels(tmp_path) == (["cat", "dog"], ["cat", "dog"])


def test_other_files_are_counted(tmp_path, caplog):
    write(tmp_path / "train", "cat/0.png", "dog/0.png", "dog/1.jpg", "dog/2.JPEG")
    write(tmp_path / "dev", "dog/0.png")
    labels(tmp_path)
    assert caplog.messages[0] == (
        f"--train_files: {tmp_path}/train: skipped 2 files without the ending .png, such as {tmp_path}/train/dog/1.jpg."
    )


def test_the_size_is_that_of_the_first_image_that_can_be_read(tmp_path):
    write(tmp_path / "train", "0.png", content=b"no image")
    write(tmp_path / "train", "1.png", "2.png")
    write(tmp_path / "dev", "0.png")
    with pytest.raises(UserError, match=r"0\.png: is no PNG"):
        labels(tmp_path)
    problem = registry.problem("image_own")
    problem.skip_bad_lines = True
    problem.configure(train_files=[str(tmp_path / "train")], dev_files=[str(tmp_path / "dev")])
    problem.check_corpus(str(tmp_path), str(tmp_path))
    assert problem.image_size == (1, 2, 1)


@pytest.mark.parametrize(
    "name, message",
    [
        ("0.png", r"train/0\.png: lies beside the folders of classes\. Move it into one of them\."),
        ("bird/0.jpg", r"train/bird: no \.png in this folder, which would be a class\. Add images or remove it\."),
    ],
)
def test_images_and_folders_without_a_class_are_refused(name, message, tmp_path):
    write(tmp_path / "train", "cat/0.png", "dog/0.png", name)
    write(tmp_path / "dev", "dog/0.png")
    with pytest.raises(UserError, match=message):
        labels(tmp_path)


def test_images_of_12_bits_keep_256_levels_in_training_and_later(tmp_path):
    for name, samples in {"train/0.png": (0, 2048), "train/1.png": (7, 4095), "dev/0.png": (0, 16)}.items():
        write(tmp_path, name, content=deep(*samples))
    problem = registry.problem("image_own")
    problem.configure(train_files=[str(tmp_path / "train")], dev_files=[str(tmp_path / "dev")])
    problem.generate_data(str(tmp_path / "data"), str(tmp_path))
    later = registry.problem("image_own")
    assert later.get_feature_encoders(str(tmp_path / "data"))["targets"].sample_bits == 12
    images = later.generate_images(str(tmp_path / "data"), str(tmp_path), DatasetSplit.TRAIN)
    # 2048 / 4095 * 255 = 127.5 + 0.03, 7 / 4095 * 255 = 0.4, 16 / 4095 * 255 = 0.996
    assert [image.reshape(-1).tolist() for image, _ in images] == [[0, 128], [0, 255]]
    images = later.generate_images(str(tmp_path / "data"), str(tmp_path), DatasetSplit.EVAL)
    assert [image.reshape(-1).tolist() for image, _ in images] == [[0, 1]]


def test_what_an_input_is_called_and_what_an_evaluation_shows():
    problem, hparams = registry.problem("image_own"), HParams()
    assert unit_of(problem) == "image"
    assert shown_metrics(problem, hparams, metric_names(problem, hparams)) == ["loss", "bits_per_dim"]


def test_a_size_that_generation_has_not_found_yet_is_named(tmp_path):
    check_what_is_not_found_yet("image_own", "image_size", tmp_path)
