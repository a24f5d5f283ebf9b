"""Hashes are the same on any machine, and a set of them knows each that it has met."""

import hashlib
from unittest import mock

import numpy as np

from t2t_lite.files.hashes import SeenHashes, file_sha256, hash64


def test_hashes_of_texts_have_their_published_values_and_depend_on_the_purpose():
    assert hash64("größe") == int.from_bytes(hashlib.blake2b("\ngröße".encode(), digest_size=8).digest(), "big")
    assert hash64("a", "weight 7") == int.from_bytes(hashlib.blake2b(b"weight 7\na", digest_size=8).digest(), "big")


def test_a_file_is_read_to_its_end_and_again_when_it_has_changed(tmp_path):
    path, data = tmp_path / "file", b"abc" * 2**19  # more than a block
    for number, content in enumerate((data, data[:-1] + b"d")):
        path.write_bytes(content)
        assert file_sha256(str(path), len(content), number) == hashlib.sha256(content).hexdigest()
    assert file_sha256(str(path), len(data), 0) == hashlib.sha256(data).hexdigest(), "by its size and times"


def test_a_set_tells_what_was_met_before_and_earlier_in_the_same_hashes():
    draw, seen, expected = np.random.default_rng(0), SeenHashes(), set()
    extremes = np.array([0, 2**64 - 1, 2**63, 2**58, 2**58 - 1], np.uint64)
    for turn in range(12):
        few = draw.integers(0, 300, 37 + turn).astype(np.uint64) << np.uint64(55)
        for hashes in (np.concatenate([few, draw.integers(0, 2**64, 201, dtype=np.uint64)]), extremes):
            was_met = []
            for value in hashes.tolist():
                was_met.append(value in expected)
                expected.add(value)
            assert seen.add(hashes).tolist() == was_met
        assert len(seen) == len(expected)


def test_what_was_added_often_is_searched_in_few_arrays():
    draw, seen = np.random.default_rng(0), SeenHashes()
    for _ in range(90):
        seen.add(draw.integers(0, 2**64, 901, dtype=np.uint64))
    with mock.patch.object(np, "searchsorted", wraps=np.searchsorted) as search:
        seen.add(np.array([7], np.uint64))
    assert search.call_count < 64 * 8, "the arrays of a part are about as many as the logarithm of its size"
