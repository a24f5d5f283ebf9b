import pytest

from t2t_lite.decoding.long_input import join_texts, split_text


def split(text, limit):
    """Every character is an id."""
    return split_text(text, len, limit)


def test_sentences_are_the_parts():
    text = "The house is red. Is it old? 'Yes!' said J. Smith… He left (at 3.15 p.m. or so).  The end"
    assert split(text, 40) == ["The house is red.", "Is it old?", "'Yes!' said J. Smith…",
                               "He left (at 3.15 p.m. or so).", "The end"]  # fmt: skip
    assert split("Es war z. B. hier. Dann war es dort.", 20) == ["Es war z. B. hier.", "Dann war es dort."]
    assert split("这是房子。它很旧！「是的。」他说？好", 6) == ["这是房子。", "它很旧！", "「是的。」", "他说？", "好"]


def test_a_long_sentence_is_split_at_clauses_then_at_blanks_then_anywhere():
    assert split("Short. One, two, three; four: five.", 16) == ["Short.", "One, two,", "three; four:", "five."]
    assert split("aaa bbb ccc ddd", 8) == ["aaa bbb", "ccc ddd"]
    assert split("aaa " + "b" * 20 + " c", 8) == ["aaa", "b" * 5, "b" * 5, "b" * 5, "b" * 5, "c"]


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "ab " * 40_000, "ab, cd. " * 15_000, "。" * 1000, "…\u2028 x\x00" * 500]
)
def test_nothing_is_lost_and_every_part_fits(text):
    parts = split(text, 50)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < len(part) <= 50 and part == part.strip() for part in parts)


def test_parts_are_joined_as_the_language_is_written():
    assert join_texts(["Eins.", "", "Zwei."], "de") == "Eins. Zwei."
    assert join_texts(["一。", "二。"], "zh") == join_texts(["一。", "二。"]) == "一。二。"
    assert join_texts(["ABC", "def"], "zh_cn") == "ABCdef"
    assert join_texts(["一 (OK)", "two"]) == "一 (OK) two"
