"""Added tokens in texts: the ids that Transformers 5.24 gives, in Python and in a graph, and where they stand."""
# Nearest tests of: t2t_lite/text/published/published_encoder.py, t2t_lite/text/offsets.py,
# Nearest tests of: t2t_lite/text/published/wordpiece.py

import json
import pathlib

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.text import offsets
from t2t_lite.text.published.published_encoder import AddedToken, as_settings, beyond, of_tokenizer_json, read_settings
from t2t_lite.text.vocabulary_files import adopt, open_encoder, read_by
from tests.text.added_tokens import ABC, ABCD, ADDED, COVID, E1, TEXTS, vocabulary
from tests.text.published_samples import PIECES, write_byte_level, write_pieces


def published(encoder, text):
    return [encoder.published_ids[i] for i in encoder.encode(text)]


def test_words_are_found_before_anything_is_done_to_a_text(tmp_path):
    encoder = open_encoder(vocabulary(tmp_path, write_pieces))
    the, s, unknown = (PIECES.index(piece) for piece in ("the", "s", "[UNK]"))
    bracket, closing = PIECES.index("["), PIECES.index("]")
    # Small letters are found where the case is lost, "[E1]" and "abc" as they are written.
    assert published(encoder, TEXTS[3]) == [the, COVID, s, E1, the, bracket, unknown, closing]
    a, mask = PIECES.index("a"), [bracket, PIECES.index("mask"), closing]
    assert published(encoder, TEXTS[4]) == [ABC, unknown, a, COVID, *mask]
    assert published(encoder, TEXTS[5]) == [the, ABCD, ABC], "the longest of those that begin alike"
    assert encoder.decode(encoder.encode("the COVID cafe")) == "the COVID cafe"
    cased = open_encoder(vocabulary(tmp_path, write_pieces, do_lower_case=False))
    assert published(cased, "COVID covid") == [COVID, unknown]


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_pieces, write_byte_level])
def test_a_graph_gives_the_same_and_where_they_stand(tmp_path, write):
    encoder = open_encoder(vocabulary(tmp_path, write))
    expected = [encoder.encode(text) for text in TEXTS]
    assert encoder.tf_encode(tf.constant(TEXTS)).to_list() == expected
    at = TEXTS[3].index("[E1]")
    row, found = offsets.encode_with_offsets(encoder, TEXTS[3])
    assert found[encoder.pieces(row).index("[E1]")] == (at, at + 4)


def test_padding_is_an_added_token_and_none_of_the_files_own(tmp_path):
    """The ids of vocabularies that have a [PAD] in vocab.json stay what they were."""
    special = ["<|endoftext|>", "[PAD]"]
    path = write_byte_level(tmp_path, special=special)
    assert open_encoder(path).published_ids[0] == -1
    path = write_byte_level(tmp_path, special=special[:1])
    count = len(json.loads(pathlib.Path(path).read_text()))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[PAD]": count}))
    encoder = open_encoder(path)
    assert encoder.published_ids[0] == count and encoder.pieces([0]) == ["[PAD]"]
    assert "[PAD]" not in encoder.pieces(encoder.encode("a [PAD]"))


def test_they_are_taken_over_with_the_vocabulary(tmp_path):
    path = vocabulary(tmp_path, write_byte_level)
    (tmp_path / "data").mkdir()
    copy = str(tmp_path / "data" / "vocab.x.300-vocab.json")
    adopt(path, copy)
    first, second = open_encoder(path), open_encoder(copy)
    assert first.encode("a COVID [E1]") == second.encode("a COVID [E1]") and first.fingerprint == second.fingerprint
    assert [pathlib.Path(file).name for file in read_by(second)] == [
        f"vocab.x.300-{name}" for name in ("vocab.json", "merges.txt", "tokenizer_config.json")
    ]
    assert second.decode(second.encode("a COVID [E1]abc")) == "a COVID abc", "special tokens are not shown"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"rstrip": True}, r"the added token 'COVID' has rstrip=true\. Expected false"),
        ({"content": " x"}, r"the added token ' x' is invalid\. Expected printable text"),
        ({"content": "abc"}, r"the added token 'abc' has the id \d+\. Expected \d+"),
    ],
)
def test_what_is_found_by_other_rules_is_refused_by_name(tmp_path, facts, message):
    path = vocabulary(tmp_path, write_pieces)
    settings = {str(COVID): ADDED[0] | facts, str(E1): ADDED[1], str(ABC): ADDED[2]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": settings}))
    with pytest.raises(UserError, match=message):
        open_encoder(path)


def test_ids_are_numbers():
    """Not texts, of which 10 comes before 9."""
    tokens = [*"abcdefghi"]
    settings = {
        "10": {"content": "new"},
        "9": {"content": "x", "special": True},
        "2": {"content": "c", "normalized": False},
    }
    added = beyond(settings, tokens, {"b"}, "v")
    assert added == [
        AddedToken("c", 2, False, False), AddedToken("x", 9, True, False), AddedToken("new", 10, False, True)
    ]  # fmt: skip
    written = as_settings(added)["added_tokens_decoder"]
    assert beyond(written, tokens, set(), "v") == added and as_settings([]) == {}
    assert beyond({"9": {"content": "b"}}, tokens, {"b"}, "v") == []
    with pytest.raises(UserError, match=r"v: the added token 'x' has the id 11\. Expected 9"):
        beyond({"11": {"content": "x"}}, tokens, set(), "v")


def test_settings_of_older_files(tmp_path):
    assert read_settings(f"{tmp_path}/a-") == {}
    (tmp_path / "a-added_tokens.json").write_text(json.dumps({"new": 9, "[X]": 10, "[Y]": 11, "[Z]": 12}))
    special = {"mask_token": {"content": "[X]"}, "additional_special_tokens": ["[Y]"]}
    (tmp_path / "a-special_tokens_map.json").write_text(json.dumps(special))
    (tmp_path / "a-tokenizer_config.json").write_text(json.dumps({"cls_token": "[Z]"}))
    found = read_settings(f"{tmp_path}/a-")
    assert {i: (facts["content"], facts["special"], facts["normalized"]) for i, facts in found.items()} == {
        "9": ("new", False, True), "10": ("[X]", True, False), "11": ("[Y]", True, False), "12": ("[Z]", True, False)
    }  # fmt: skip
    listed = [{"id": 9, "content": "new", "lstrip": True, "other": 1}]
    assert of_tokenizer_json(listed, "t") == {"9": {"content": "new", "lstrip": True}}
    for wrong in ("x", {"id": "9", "content": "new"}, {"id": 9}):
        with pytest.raises(UserError, match="t: 'added_tokens'"):
            of_tokenizer_json([wrong], "t")
