"""Images as ids, and as PNGs of which the upper half is read."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.extras.images.image_own import ImageEncoder
from t2t_lite.extras.images.png_files import png_bytes, read_upper_halves

ENCODER = ImageEncoder((4, 3, 3), ["cat", "old dog"])
IMAGE = np.random.default_rng(0).integers(0, 256, (4, 3, 3), np.uint8)


def test_each_channel_has_ids_of_its_own():
    ids = ENCODER.encode_image(IMAGE)
    assert ENCODER.vocab_size == 3 + 2 + 3 * 256 and [(i - 5) // 256 for i in ids] == [0, 1, 2] * 12
    np.testing.assert_array_equal(ENCODER.decode_image([3, *ids]), IMAGE)
    np.testing.assert_array_equal(ENCODER.decode_image(ids[:9])[1:], np.zeros((3, 3, 3)))


def test_a_text_is_a_class_and_pixels_are_numbers():
    assert [ENCODER.encode(text) for text in ("old dog", " ", "cat ")] == [[4], [2], [3]]
    with pytest.raises(
        UserError, match=r"'cow' is no class of these images\. Expected one of cat, old dog, or a blank"
    ):
        ENCODER.encode("cow")
    shown = " ".join(map(str, IMAGE[0, 0]))
    ids = [4, *ENCODER.encode_image(IMAGE)[:3]]
    assert ENCODER.decode(ids) == f"old dog {shown}"
    assert ENCODER.tf_encode(tf.constant(["old dog", " ", "cow"])).to_list() == [[4], [2], [2]]
    assert ENCODER.tf_decode(tf.ragged.constant([ids])).numpy() == [shown.encode()]


def test_the_class_of_an_image_to_complete_is_the_name_of_its_folder(tmp_path):
    (tmp_path / "cat").mkdir()
    for name in ("b.png", "cat/a.PNG"):
        (tmp_path / name).write_bytes(png_bytes(IMAGE))
    upper = ENCODER.encode_image(IMAGE[:2])
    assert read_upper_halves(str(tmp_path), {"targets": ENCODER}) == [[2, *upper], [3, *upper]]


def test_blocks_come_one_after_the_other():
    encoder, image = ImageEncoder((4, 2, 3), blocks=(2, 3)), np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
    ids, columns = encoder.encode_image(image), image.reshape(4, 6)
    cells = [(row + r, column + c) for row in (0, 2) for column in (0, 3) for r in range(2) for c in range(3)]
    assert [(i - 3) % 256 for i in ids] == [columns[cell] for cell in cells]
    assert [(i - 3) // 256 for i in ids] == [column % 3 for _, column in cells]
    np.testing.assert_array_equal(encoder.decode_image(ids), image)
    assert encoder.half == 2 and encoder.encode_image(image[:2]) == ids[:12]
    np.testing.assert_array_equal(encoder.decode_image(ids[:12])[:2], image[:2])
    assert ImageEncoder((4, 2, 3), blocks=(4, 3)).half == 0
    assert encoder.fingerprint != ImageEncoder((4, 2, 3)).fingerprint
    with pytest.raises(UserError, match="blocks of 3 x 3: do not divide an image of 4 rows and 2 x 3 columns"):
        ImageEncoder((4, 2, 3), blocks=(3, 3))
