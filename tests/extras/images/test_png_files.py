"""PNGs of every kind are read exactly, or refused in one line; grids."""

import logging
import re
import struct

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.images.image_own import ImageEncoder
from t2t_lite.extras.images.png_files import (
    check_samples,
    class_of,
    find_sample_bits,
    png_bytes,
    read_png,
    read_upper_halves,
    warn_of_colors,
    write_grid,
)
from tests.extras.images.pngs import GREY_ALPHA, PALETTE, RGB, RGBA, chunk, deep, png

_PALETTE = chunk(b"PLTE", bytes([10, 20, 30, 40, 50, 60, 70, 80, 90]))


def written(folder, content, name="a.png"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return str(folder / name)


_KINDS = {
    "1 bit": (png(8, [b"\xa5"], 1), [[255, 0, 255, 0, 0, 255, 0, 255]]),
    "2 bits": (png(4, [b"\x1b"], 2), [[0, 85, 170, 255]]),
    "4 bits": (png(2, [b"\x1f"], 4), [[17, 255]]),
    "8 bits": (png(2, [b"\x05\xff", b"\x06\x00"]), [[5, 255], [6, 0]]),
    # 128 / 257 is below a half, 129 / 257 above; the high byte of 0x1ff is 1
    "16 bits": (deep(0, 128, 129, 0x1FF, 0xFFFF), [[0, 0, 1, 2, 255]]),
    "interlaced": (png(2, [b"\1", b"\2", b"\3\4"], interlace=1), [[1, 2], [3, 4]]),
    "RGB": (png(1, [b"\1\2\3"], 8, RGB), [[[1, 2, 3]]]),
    "RGB of 16 bits": (png(1, [struct.pack(">3H", 257, 514, 65535)], 16, RGB), [[[1, 2, 255]]]),
    "palette": (png(4, [b"\x18"], 2, PALETTE, _PALETTE), [[[10, 20, 30], [40, 50, 60], [70, 80, 90], [10, 20, 30]]]),
    "still": (png(1, [b"\7"], before=chunk(b"acTL", struct.pack(">II", 1, 0))), [[7]]),
    "linear": (png(1, [b"\7"], before=chunk(b"gAMA", struct.pack(">I", 100000))), [[7]]),
}  # fmt: skip


@pytest.mark.parametrize("content, pixels", _KINDS.values(), ids=_KINDS)
def test_samples_of_each_kind(content, pixels, tmp_path):
    expected = np.array(pixels, np.uint8)
    found = read_png(written(tmp_path, content))
    np.testing.assert_array_equal(found, expected if expected.ndim == 3 else expected[..., None])


@pytest.mark.parametrize(
    "content, message",
    [
        (png(1, [b"\1\2"], 8, GREY_ALPHA), "has an alpha channel"),
        (png(1, [b"\1\2\3\4"], 8, RGBA), "has an alpha channel"),
        (png(1, [b"\5"], before=chunk(b"tRNS", b"\0\5")), "has a transparent colour"),
        (png(1, [b"\5\6\7"], 8, RGB, chunk(b"tRNS", b"\0\5\0\6\0\7")), "has a transparent colour"),
        (png(4, [b"\x18"], 2, PALETTE, _PALETTE + chunk(b"tRNS", b"\0")), "has a transparent colour"),
        (png(1, [b"\5"], before=chunk(b"acTL", struct.pack(">II", 3, 0))), ".* 3 frames"),
        (png(1, [b"\5"])[:-12], "damaged"),
        (png(2, [b"\5"]), "damaged"),
        (png(1, [b"\5"])[:20], "damaged"),
        (b"\xff\xd8\xff\xe0", ".*not a PNG"),
    ],
)
def test_what_cannot_be_kept_is_refused(content, message, tmp_path):
    with pytest.raises(UserError, match=rf"a\.png: {message}"):
        read_png(written(tmp_path, content))


def test_a_corpus_tells_how_many_bits_its_samples_hold(tmp_path):
    dark, bright = written(tmp_path, deep(1, 16), "dark.png"), written(tmp_path, deep(0, 4095), "bright.png")
    eight = written(tmp_path, png(1, [b"\xff"]), "eight.png")
    damaged = written(tmp_path, deep(65535)[:-20], "damaged.png")
    refused = written(tmp_path, png(1, [struct.pack(">2H", 7, 65535)], 16, GREY_ALPHA), "alpha.png")
    assert find_sample_bits([dark, damaged, bright, eight, refused]) == 12 and find_sample_bits([eight]) is None
    assert read_png(dark, 12).reshape(-1).tolist() == [0, 1], "16 of 4,095 is 1.0 of 255"
    assert read_png(bright, 12).reshape(-1).tolist() == [0, 255]
    assert read_png(eight, 12).reshape(-1).tolist() == [255]
    assert read_png(bright, 16).reshape(-1).tolist() == [0, 16], "4,095 of 65,535 is 15.9 of 255"
    every = written(tmp_path, deep(*range(4096)), "every.png")
    assert np.bincount(read_png(every, 12).reshape(-1)).min() >= 8, "12 bits use all 256 levels"
    for largest, bits in [(255, 8), (256, 10), (1023, 10), (5000, 14), (16383, 14), (16384, 16), (65535, 16)]:
        assert find_sample_bits([written(tmp_path, deep(largest))]) == bits
    with pytest.raises(UserError, match=r"a\.png.* 4,096\D.* 4,095\D.* 12 bits"):
        read_png(written(tmp_path, deep(4096)), 12)


def test_an_image_of_more_bits_than_most_is_named(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "t2t_lite")
    paths = [written(tmp_path, deep(largest), f"{largest}.png") for largest in (4000, 3000, 65000)]
    assert find_sample_bits(paths[1:]) == 16 and not caplog.messages, "one dark image of two"
    assert find_sample_bits(paths) == 16
    (told,) = caplog.messages
    assert re.search(f"2 of 3 .*{paths[0]}.* 16,383, but {paths[2]}.* 16 bits", told)


def test_an_image_alone_does_not_tell_whether_it_is_dark_or_holds_12_bits(tmp_path):
    with pytest.raises(UserError, match=r"a\.png.* 4,000\D.* 12 bits.* by 16\b"):
        read_png(written(tmp_path, deep(0, 4000)))
    assert not read_png(written(tmp_path, deep(0, 0))).any(), "black is black"
    image = written(tmp_path, png(1, [b"\0\1", b"\x0f\xff"], 16))
    assert read_upper_halves(image, {"targets": ImageEncoder((2, 1, 1), sample_bits=12)}) == [[2, 3]]
    with pytest.raises(UserError, match=r"4,095.* 12 bits"):
        read_upper_halves(image, {"targets": ImageEncoder((2, 1, 1))})


def test_colours_that_viewers_would_convert_are_told_once(tmp_path, caplog):
    gamma, srgb = (lambda value: chunk(b"gAMA", struct.pack(">I", value))), chunk(b"sRGB", b"\0")
    plain = [b"", gamma(45455), gamma(45000), gamma(100000) + srgb, chunk(b"iCCP", b"x\0\0") + srgb]
    warn_of_colors([written(tmp_path, png(1, [b"\7"], before=before), f"{n}.png") for n, before in enumerate(plain)])
    assert not caplog.messages
    for before in (gamma(100000), gamma(55556), chunk(b"iCCP", b"x\0\0"), chunk(b"cICP", bytes([9, 16, 0, 1]))):
        warn_of_colors([written(tmp_path, png(1, [b"\7"], before=before), name) for name in ("a.png", "b.png")])
        assert re.search(r"a\.png and 1 more: .*gAMA, iCCP or cICP", caplog.messages.pop())
        warn_of_colors([written(tmp_path, png(1, [b"\7"], before=before))])
        assert "more" not in caplog.messages.pop()


def test_the_class_is_the_folder_directly_below_the_given_one():
    assert class_of("train/cat/1.png", ["train"]) == class_of("train/cat/b1/c/1.png", ["dev", "train/"]) == "cat"
    assert class_of("train/cat/1.png", ["train/cat"]) == class_of("train/cat/1.png") == "cat"
    assert class_of("train2/cat/1.png", ["train", "train2"]) == "cat", "train is no part of train2"
    assert class_of("gs://bucket/train/cat/b1/1.png", ["gs://bucket/train"]) == "cat"
    assert class_of("train/cafe\u0301/1.png", ["train"]) == "caf\u00e9", "as one types it, not as macOS stores it"


def test_folders_of_the_decoder_that_are_no_class_are_told(tmp_path, caplog):
    for name in ("cat/b1/1.png", "Cat/2.png", "bird/5.png", "3.PNG", ".hidden/4.png"):
        written(tmp_path / "halves", png_bytes(np.full((2, 1, 1), 9, np.uint8)), name)
    encoder = ImageEncoder((2, 1, 1), ["cat", "dog"])
    assert read_upper_halves(str(tmp_path / "halves"), {"targets": encoder}) == [*[[2, 14]] * 3, [3, 14]]
    (told,) = caplog.messages
    assert re.search(f"{tmp_path}/halves: 2 subfolders .*Cat, bird.*such as cat", told)


def test_a_grid_is_read_and_written_row_by_row(tmp_path):
    encoder, draw = ImageEncoder((3, 2, 3), ["cat"]), np.random.default_rng(0)
    images = draw.integers(0, 256, (3, 3, 2, 3), np.uint8)
    ids = [encoder.encode_image(image) for image in images]
    answers = [([3, *ids[0][:6]], [ids[0][6:], ids[1][6:]]), ("cat", [ids[2]])]  # of the second row, one is black
    ((name, content),) = write_grid("x/out.png", answers, {"targets": encoder}).items()
    grid = read_png(written(tmp_path, content))
    assert name == "x/out.png" and grid.shape == (6, 4, 3)
    np.testing.assert_array_equal(grid[:3, :2], images[0])
    np.testing.assert_array_equal(grid[0, 2:], images[0, 0], "the given row")
    np.testing.assert_array_equal(grid[1:3, 2:], images[1, 1:])
    np.testing.assert_array_equal(grid[3:], np.concatenate([images[2], np.zeros((3, 2, 3))], axis=1))
    halves = read_upper_halves(str(tmp_path / "a.png"), {"targets": encoder})
    assert halves == [[2, *ids[0][:6]], [2, *ids[0][:6]], [2, *ids[2][:6]], [2, *encoder.encode_image(grid[3:4, 2:])]]
    with pytest.raises(UserError, match=r"out\.png.*inputs"):
        write_grid("out.png", [], {"targets": encoder})
    for size in ((4, 4, 3), (3, 3, 3), (3, 2, 1)):
        written(tmp_path, png_bytes(np.zeros(size, np.uint8)))
        with pytest.raises(UserError, match=rf"a\.png.*{size[1]}x{size[0]}, .*2x3, RGB"):
            read_upper_halves(str(tmp_path / "a.png"), {"targets": encoder})


@pytest.mark.parametrize("image", [np.array([[[256]]]), np.array([[[-1]]]), np.array([[[0.5]]]), np.array([[[True]]])])
def test_arrays_that_are_not_bytes_are_refused(image):
    with pytest.raises(UserError, match=rf"my_images.*{image.dtype}.* 0 to 255"):
        check_samples("my_images", image)
    check_samples("my_images", np.array([[[255]]]))
