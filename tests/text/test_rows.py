"""The first ids of texts of megabytes, by every kind of vocabulary."""

import time

import pytest

from t2t_lite.text.offsets import decode_with_offsets, piece_spans
from t2t_lite.text.rows import encode_beginning
from tests.text.published_samples import texts
from tests.text.test_offsets import KINDS, SENTENCES

CLASSES = [".", "a", " ", "\x00", "\u0301", "ﷺ", "\U0001f600", '."', "a b ", "\u2581"]


@pytest.fixture(scope="module", params=KINDS)
def encoder(request, tmp_path_factory):
    return KINDS[request.param](tmp_path_factory.mktemp(request.param))


def test_they_are_those_of_the_whole_and_little_else_is_encoded(encoder, monkeypatch):
    whole, encode, sizes = " ".join([*texts(3000), *SENTENCES * 2000]), encoder.encode, []
    expected = encode(whole)
    monkeypatch.setattr(encoder, "encode", lambda text: sizes.append(len(text)) or encode(text))
    for count in (1, 50, 300):
        assert encode_beginning(encoder, whole, count)[:count] == expected[:count]
    assert len(expected) > 20_000 and sum(sizes) < len(whole) / 2
    short = SENTENCES[0]
    assert encode_beginning(encoder, short, 3) == encode(short)
    spaces = " " * 10**5 + short  # where some vocabularies have no ids
    assert encode_beginning(encoder, spaces, 3)[:3] == encode(spaces)[:3]
    assert encode_beginning(encoder, "#" * 10**5, 3, lambda text: text.replace("#", "a "))[:3] == encode("a a a")[:3]


@pytest.mark.few(".", "\\ufdfa")
@pytest.mark.parametrize("characters", CLASSES)
def test_a_hostile_text_takes_linear_time(encoder, characters):
    text = characters * (2 * 10**5 // len(characters))
    start = time.process_time()
    ids = encode_beginning(encoder, text, 512)
    assert time.process_time() - start < 1
    assert ids[:20] == encoder.encode(text[: 2 * 10**4])[:20]
    assert len(piece_spans(encoder, ids[:512], text)) == len(ids[:512])
    decode_with_offsets(encoder, ids[:100])
    assert time.process_time() - start < 2
