"""Images as ids; the classes, the size and the bits of the user's own PNGs."""

import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import NotWritten, UserError
from t2t_lite.extras.images.image_own import ImageEncoder, ImageProblem
from t2t_lite.extras.images.png_files import png_bytes
from t2t_lite.settings.config import HParams
from tests.extras.images.pngs import deep
from tests.extras.own_problems import check_names

ENCODER = ImageEncoder((5, 4, 3), ["cat", "old dog"])
IMAGE = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)


def test_each_channel_has_ids_of_its_own():
    ids = ENCODER.encode_image(IMAGE)
    assert ids == [5 + 256 * channel + value for pixel in IMAGE.reshape(-1, 3).tolist()
                   for channel, value in enumerate(pixel)]  # fmt: skip
    assert ENCODER.vocab_size == 3 + 2 + 3 * 256 and ENCODER.length == len(ids) == 60 and ENCODER.half == 2
    np.testing.assert_array_equal(ENCODER.decode_image([3, *ids, 7, 7]), IMAGE)
    np.testing.assert_array_equal(ENCODER.decode_image(ids[:12]), [IMAGE[0], *np.zeros((4, 4, 3))])
    assert ENCODER.count_pixels([2, 4, *ids[:7]]) == 7


def test_a_text_is_a_class_and_pixels_are_numbers():
    assert [ENCODER.encode(text) for text in ("old dog", " ", "cat ")] == [[4], [2], [3]]
    for encoder, expected in (
        (ENCODER, "'cow'.*cat, old dog, or a blank"),
        (ImageEncoder((1, 1, 1)), "'cow'.*a blank"),
    ):
        with pytest.raises(UserError, match=expected):
            encoder.encode("cow")
    shown = " ".join(map(str, IMAGE[0, 0]))
    ids = [4, *ENCODER.encode_image(IMAGE)[:3]]
    assert ENCODER.decode(ids) == f"old dog {shown}" and ENCODER.pieces([2, 5, 772]) == ["<unk>", "0", "255"]
    assert ENCODER.tf_encode(tf.constant(["old dog", " ", "cow", " cat"])).to_list() == [[4], [2], [2], [3]]
    assert ENCODER.tf_decode(tf.ragged.constant([[*ids, 773, 5], [772]])).numpy().tolist() == [
        f"{shown} 0".encode(), b"255"
    ]  # fmt: skip


def test_blocks_come_one_after_the_other():
    encoder, image = ImageEncoder((4, 2, 3), blocks=(2, 3)), np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    ids, columns = encoder.encode_image(image), image.reshape(4, 6)
    cells = [(row + r, column + c) for row in (0, 2) for column in (0, 3) for r in range(2) for c in range(3)]
    assert [(i - 3) % 256 for i in ids] == [columns[cell] for cell in cells]
    assert [(i - 3) // 256 for i in ids] == [column % 3 for _, column in cells]
    np.testing.assert_array_equal(encoder.decode_image(ids), image)
    assert encoder.half == 2 and encoder.encode_image(image[:2]) == ids[:12]
    np.testing.assert_array_equal(encoder.decode_image(ids[:12])[:2], image[:2])
    assert [ImageEncoder((12, 2, 3), blocks=(rows, 3)).half for rows in (4, 6, 12)] == [4, 6, 0]
    for blocks in ((3, 3), (2, 4)):
        with pytest.raises(UserError, match=rf"image_blocks=\({blocks[0]}, {blocks[1]}\).* 4 rows and 2 x 3 columns"):
            ImageEncoder((4, 2, 3), blocks=blocks)


def test_encoders_of_other_ids_have_other_fingerprints():
    options = [{}, {"class_labels": ["a"]}, {"class_labels": ["b"]}, {"blocks": (2, 3)}, {"blocks": (2, 6)}]
    fingerprints = [ImageEncoder((4, 2, 3), **given).fingerprint for given in options]
    fingerprints += [ImageEncoder((2, 4, 3)).fingerprint]
    assert len({*fingerprints}) == 6 and ImageEncoder((4, 2, 3), sample_bits=12).fingerprint == fingerprints[0]


def test_the_part_of_an_image_that_is_given():
    """Halves of rows do not count: 2 of 5 rows are 24 ids."""
    problem, pixels = registry.problem("image_own"), ENCODER.encode_image(IMAGE)
    given = [problem.given_part([3, *pixels[:count]], {"targets": ENCODER}) for count in (0, 11, 12, 35, 60)]
    assert given == [None, None, (0, 0, 1, 0.2), (0, 0, 1, 0.4), (0, 0, 1, 1.0)]
    assert problem.example_length({"targets": ENCODER}) == 61


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((5, 4, 1), np.uint8), "4x5, grey.*4x5, RGB"),
        (np.zeros(60, np.uint8), "array of 1 dimension.*4x5, RGB"),
        (np.full((5, 4, 3), 256), "int64.* 256 to 256.*255"),
    ],
)
def test_what_a_problem_of_python_has_to_write(image, message):
    class Mine(ImageProblem):
        pass

    for what in ("image_size", "generate_images"):
        with pytest.raises(NotWritten, match=f"Mine.*{what}"):
            problem = Mine()
            problem.image_size if what == "image_size" else problem.generate_images(None, None, None)
    Mine.image_size, Mine.generate_images = (5, 4, 3), lambda *arguments: [(image, "")]
    with pytest.raises(UserError, match=message):
        next(Mine().generate_encoded_samples(None, None, None))
    assert Mine().sequence_length == Mine().max_length(HParams(max_length=7)) == 60


def write(folder, *names, content=None):
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content or png_bytes(np.full((1, 2, 1), number, np.uint8)))
    return str(folder)


def checked(tmp_path, train=("train",), dev="dev", skip_bad_lines=False):
    problem = registry.problem("image_own")
    problem.skip_bad_lines = skip_bad_lines
    problem.configure(train_files=[str(tmp_path / name) for name in train], dev_files=[str(tmp_path / dev)])
    problem.check_corpus(str(tmp_path), str(tmp_path))
    return problem


def labels(tmp_path, train=("train",), dev="dev"):
    """Returns (the classes, the class of each training image in the order of their paths)."""
    problem = checked(tmp_path, train, dev)
    images = problem.generate_images(str(tmp_path), str(tmp_path), DatasetSplit.TRAIN)
    return list(problem.class_labels), [label for _, label in images]


CLASSES = {  # images below the folder, those given for training and dev, classes, the class of each training image
    "as of torchvision": ("t/dog/b1/0 t/cat/b1/0 t/cat/b2/deep/1 t/cat/2 t/Ärger/0 d/cat/b9/0 d/dog/0", "t", "d",
                          "cat dog Ärger", "cat cat cat dog Ärger"),
    "in parts": ("t1/cat/b1/0 t1/dog/b1/0 t2/cat/b1/0 more/dog/0 d/dog/0", "t1 t2 more/dog", "d", "cat dog",
                 "cat dog cat dog"),
    "one by one": ("t1/cat/b1/0 more/dog/0 d/b1/0 d/dog/0", "t1/cat/b1/0.png more/dog/0.png", "d", "b1 dog", "b1 dog"),
    "a folder is no class": ("t/0 t/1 d/0", "t", "d", "", "- -"),
    "nor is one": ("t/cat/b1/0 t/cat/b2/0 d/0", "t", "d", "", "- -"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_are_the_folders_below_the_given_one(kind, tmp_path):
    names, train, dev, classes, expected = CLASSES[kind]
    write(tmp_path, *(f"{name}.png" for name in names.split()))
    found = [label.replace("-", "") for label in expected.split()]
    assert labels(tmp_path, train.split(), dev) == (classes.split(), found)


def test_hidden_names_and_links_that_lead_back_are_left_out(tmp_path):
    write(tmp_path / "train", "cat/0.PNG", "cat/._0.png", ".ipynb_checkpoints/0.png", ".thumbs/cat/0.png")
    write(tmp_path / "elsewhere", "0.png")
    (tmp_path / "train" / "dog").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "train" / "cat" / "loop").symlink_to(tmp_path / "train")
    write(tmp_path / "dev", "dog/0.png")
    assert labels(tmp_path) == (["cat", "dog"], ["cat", "dog"])


def test_other_files_are_counted(tmp_path, caplog):
    write(tmp_path / "train", "cat/0.png", "dog/0.png", "dog/1.jpg", "dog/2.JPEG")
    write(tmp_path / "dev", "dog/0.png")
    labels(tmp_path)
    (told,) = (message for message in caplog.messages if "skipped" in message)
    assert "--train_files" in told and f"{tmp_path}/train: skipped 2 files" in told and "dog/1.jpg" in told


def test_the_size_is_that_of_the_first_image_that_can_be_read(tmp_path):
    write(tmp_path / "train", "0.png", content=b"no image")
    write(tmp_path / "train", "1.png", "2.png")
    write(tmp_path / "dev", "0.png")
    with pytest.raises(UserError, match=r"0\.png.*PNG"):
        checked(tmp_path)
    assert checked(tmp_path, skip_bad_lines=True).image_size == (1, 2, 1)


@pytest.mark.parametrize(
    ("name", "message"), [("0.png", r"train/0\.png.*class folders"), ("bird/0.jpg", r"train/bird.*no \.png")]
)
def test_images_and_folders_without_a_class_are_refused(name, message, tmp_path):
    write(tmp_path / "train", "cat/0.png", "dog/0.png", name)
    write(tmp_path / "dev", "dog/0.png")
    with pytest.raises(UserError, match=message):
        labels(tmp_path)


def test_images_of_12_bits_keep_256_levels_in_training_and_later(tmp_path):
    for name, samples in {"train/0.png": (0, 2048), "train/1.png": (7, 4095), "dev/0.png": (0, 16)}.items():
        write(tmp_path, name, content=deep(*samples))
    checked(tmp_path).generate_data(str(tmp_path / "data"), str(tmp_path))
    later = registry.problem("image_own")
    assert later.get_feature_encoders(str(tmp_path / "data"))["targets"].sample_bits == 12
    # 2048 / 4095 * 255 = 127.5 + 0.03, 7 / 4095 * 255 = 0.4, 16 / 4095 * 255 = 0.996
    for split, expected in ((DatasetSplit.TRAIN, [[0, 128], [0, 255]]), (DatasetSplit.EVAL, [[0, 1]])):
        images = later.generate_images(str(tmp_path / "data"), str(tmp_path), split)
        assert [image.reshape(-1).tolist() for image, _ in images] == expected


def test_what_an_input_is_called_and_what_an_evaluation_shows():
    check_names("image_own", "image", "bits_per_dim")
    assert registry.problem("image_own").unknown_class_rate == 0.1


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("image_size", None, "no image_size yet"), ("image_size", [28, 28], "image_size"),
     ("image_size", [0, 2, 1], "image_size"),
     ("sample_bits", 17, "sample_bits"), ("sample_bits", 7, "sample_bits")],
)  # fmt: skip
def test_what_the_stored_settings_lack_is_named(key, value, message, tmp_path):
    config = {"problem": "image_own", "files": {}, key: value}
    (tmp_path / "image_own.json").write_text(json.dumps(config))
    problem = registry.problem("image_own")
    with pytest.raises(UserError, match=rf"image_own\.json.*{message}"):
        problem.read_config(str(tmp_path))
        problem.determined(key)
