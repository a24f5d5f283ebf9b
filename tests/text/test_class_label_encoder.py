"""Class labels and numbers as ids."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.text.class_label_encoder import ClassLabelEncoder, RealEncoder


def test_labels():
    encoder = ClassLabelEncoder(["no", "yes", "may be"])
    assert (encoder.vocab_size, encoder.unknown_id) == (4, None)
    assert [encoder.encode(label) for label in ("yes", "may be", "no")] == [[2], [3], [1]]
    assert [encoder.decode(ids) for ids in ([2], 3, [0], [])] == ["yes", "may be", "", ""]
    assert encoder.pieces([0, 3, 1]) == ["<pad>", "may be", "no"]
    prints = {ClassLabelEncoder(labels).fingerprint for labels in (["a", "b"], ["b", "a"], ["a", "b", "c"])}
    assert len(prints) == 3 and ClassLabelEncoder(["b", "a"]).fingerprint in prints
    with pytest.raises(UserError, match=r"'Yes'.*: no, yes|'Yes'.* no, yes, may be"):
        encoder.encode("Yes")
    with pytest.raises(UserError, match="2"):
        encoder.encode(2)


def test_labels_of_a_file(tmp_path):
    path = tmp_path / "labels"
    path.write_bytes("\ufeffno\r\n yes\r\n".encode())
    encoder = ClassLabelEncoder(class_labels_fname=str(path))
    assert encoder.class_labels == ["no", "yes"] and encoder.path == str(path)
    assert ClassLabelEncoder(["a"], str(path)).class_labels == ["a"]
    for content in (b"", b"no\nyes\n\n"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"labels: .*''.*blank"):
            ClassLabelEncoder(class_labels_fname=str(path))
    path.write_bytes(b"no\n\xff\n")
    with pytest.raises(UserError, match="labels: not UTF-8: byte 3"):
        ClassLabelEncoder(class_labels_fname=str(path))
    with pytest.raises(UserError, match="none: no such file"):
        ClassLabelEncoder(class_labels_fname=str(tmp_path / "none"))


@pytest.mark.parametrize("labels", [[], None, ["a", "b", "a"], ["a", 1], ["a", ""]])
def test_labels_that_cannot_be(labels):
    with pytest.raises(UserError, match=rf"class labels \[{'.*a.*' if labels else ''}\]"):
        ClassLabelEncoder(labels)


def test_numbers():
    encoder = RealEncoder(1, 5)
    assert [encoder.encode(text) for text in ("1", "5", 3.0)] == [[1], [2**16], [1 + 2**15]]
    assert encoder.value(0.5) == 3.0 and encoder.decode([2**16]) == "5" and encoder.pieces([0, 1]) == ["<pad>", "1"]
    for number in (1.234, 4.9):
        assert float(encoder.decode(encoder.encode(number))) == pytest.approx(number, abs=4 / 2**16)
    assert RealEncoder(1, 5).decode(RealEncoder(1, 5).encode("4.3")) == "4.3"
    far = RealEncoder(1_700_000_000, 1_700_000_600)
    assert [float(far.decode([i])) for i in (1, 2**15, 2**16)] == pytest.approx(
        [1_700_000_000, 1_700_000_300, 1_700_000_600], rel=1e-10
    )
    assert RealEncoder(0, 1e6).decode([2**16]) == "1000000" and RealEncoder(0, 1e-6).decode([2**16]) == "1e-06"
    for wrong in ("five", "nan", "inf", 5.1, None):
        with pytest.raises(UserError, match="expected a number from 1 to 5"):
            encoder.encode(wrong)
    assert RealEncoder(1, 4).fingerprint != encoder.fingerprint
    for lowest, highest in ((2, 2), (3, 2), (0, float("inf")), (-1.7e308, 1.7e308), (0, 5e-324)):
        with pytest.raises(UserError, match=r"numbers from .* to .*: expected"):
            RealEncoder(lowest, highest)


@pytest.mark.parametrize(
    "lowest, highest", [(1, 5), (0.123456789, 0.98765432), (1 / 3, 2 / 3), (-1e9, 1e9), (0, 1e-300)]
)
def test_the_text_of_a_number_has_its_id(lowest, highest):
    encoder = RealEncoder(lowest, highest)
    ids = [*range(1, 100), *range(100, 2**16 - 100, 97), *range(2**16 - 100, 2**16 + 1)]
    assert [encoder.encode(encoder.decode(i)) for i in ids] == [[i] for i in ids]
    assert encoder.decode(2**16 + 9) == encoder.decode(2**16)
