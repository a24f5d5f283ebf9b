"""Where sentences end, where what is too long is split, and how the parts are joined."""

import time

import pytest

from t2t_lite.corpora.sentences import (
    answers_to_parts,
    checked_choice,
    join_texts,
    ranks,
    sentence_parts,
    sentences,
    split_text,
    starts_of,
)
from t2t_lite.errors import UserError


def split(text, limit):
    """Every character is an id."""
    return split_text(text, len, limit)


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "The house is red. Is it old? 'Yes!' said J. Smith… He left (at 3.15 p.m. or so).  The end",
            ["The house is red.", "Is it old?", "'Yes!' said J. Smith…", "He left (at 3.15 p.m. or so).", "The end"],
        ),
        ("Es war z. B. hier. Dann war es dort.", ["Es war z. B. hier.", "Dann war es dort."]),
        ("这是房子。它很旧！「是的。」他说？好", ["这是房子。", "它很旧！", "「是的。」", "他说？", "好"]),
        ("Mr. Smith met Dr. Jones. They left.", ["Mr. Smith met Dr. Jones.", "They left."]),
        ("Am 23. Oktober 2020 kam er. Danach nicht.", ["Am 23. Oktober 2020 kam er.", "Danach nicht."]),
        ("See Fig. 3 of No. 5. He said no. Then he left.", ["See Fig. 3 of No. 5.", "He said no.", "Then he left."]),
        ("He is in Washington D.C. The city is old.", ["He is in Washington D.C.", "The city is old."]),
        ("The U.S. Army left at 5 p.m. It was dark.", ["The U.S. Army left at 5 p.m.", "It was dark."]),
        ("She has a Ph.D. He has an M.A. in history.", ["She has a Ph.D.", "He has an M.A. in history."]),
        ("Fruit, e.g. The Apple. Not i.e. The Pear.", ["Fruit, e.g. The Apple.", "Not i.e. The Pear."]),
        ("By J.K. Rowling and K. He. It's J. R. The end.", ["By J.K. Rowling and K. He.", "It's J. R. The end."]),
        ("z. B. The Beatles und J. S. Bach.", ["z. B. The Beatles und J. S. Bach."]),
        ("Take vitamin C. This helps.", ["Take vitamin C.", "This helps."]),
        ("See Eq. 2. Then (Sec. 4) Fig. 12. We stop.", ["See Eq. 2.", "Then (Sec. 4) Fig. 12.", "We stop."]),
        ("Table 3. Results are in Section 5. Next one", ["Table 3.", "Results are in Section 5.", "Next one"]),
        ("Am 3. Oktober. The answer is 4. But why?", ["Am 3. Oktober.", "The answer is 4.", "But why?"]),
        ("Open x.org. Read a.txt. Stop 1.5. Now", ["Open x.org.", "Read a.txt.", "Stop 1.5. Now"]),
        ("Apple Inc. The firm. By Apple Inc. Cupertino.", ["Apple Inc.", "The firm.", "By Apple Inc. Cupertino."]),
        ("»Ja.« Er ging. (It is.) {So.} Yes", ["»Ja.«", "Er ging.", "(It is.)", "{So.}", "Yes"]),
        ("「これは本。あれも本。」と言った。次。", ["「これは本。あれも本。」と言った。", "次。"]),
        ("他说：“你好。你是谁？”我说：“我。”", ["他说：“你好。你是谁？”", "我说：“我。”"]),
        ("「終わり。」「次。」。（注。）、次。", ["「終わり。」", "「次。」。", "（注。）、次。"]),
        ("【注意。】次。〈それ。〉次", ["【注意。】", "次。", "〈それ。〉", "次"]),
        ("「本。" + "は。" * 150, ["「本。", *["は。"] * 150]),  # never closed
        ("He is Smith.          Next one", ["He is Smith.", "Next one"]),  # what is far away is no initial
        ("„Ja.“ Er ging. «Non.» Elle part.", ["„Ja.“", "Er ging.", "«Non.»", "Elle part."]),
        ("Wait . . . What? ... No!", ["Wait . . .", "What? ...", "No!"]),
        ("वह गया। वह आया। لماذا؟ نعم", ["वह गया।", "वह आया।", "لماذا؟", "نعم"]),
        ("the red house. a tree was new! mr. smith left", ["the red house.", "a tree was new!", "mr. smith left"]),
        ("The house (No. 5) was red... or blue? so he said.", ["The house (No. 5) was red... or blue? so he said."]),
        ("It grew by 3.5 percent at example.org.", ["It grew by 3.5 percent at example.org."]),
        (" \t", []),
    ],
)  # fmt: skip
def test_where_sentences_end(text, expected):
    assert sentences(text) == split_text(text, len, 200) == expected
    assert sentence_parts(text) == (expected if len(expected) > 1 else [text])


CLASSES = [
    "「", "「a。", "“。", "D.C. ", "p. 2. The ",
    ".", "!", "。", "…", '"', ".\"", ". ", "A. ", "aB. ", ". a", "?\u2028", "a", "1", "a,b ", " ", "\u0301", "一",
]  # fmt: skip


@pytest.mark.parametrize("characters", CLASSES)
def test_a_hostile_line_takes_linear_time(characters):
    text = characters * (2 * 10**5 // len(characters))
    start = time.process_time()
    parts = split_text(text, len, 512)
    assert time.process_time() - start < 2 and all(len(part) <= 512 for part in parts)
    assert starts_of(parts, text) == sorted(starts_of(parts, text))


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
    assert join_texts(["Eins.", "", "Zwei."], "de") == ("Eins. Zwei.", [0, 5, 6])
    assert join_texts(["一。", "二。"], "zh") == join_texts(["一。", "二。"]) == ("一。二。", [0, 2])
    assert join_texts(["ABC", "def"], "zh_cn")[0] == join_texts(["ABC", "def"], "yue-Hant-HK")[0] == "ABCdef"
    assert join_texts(["ABC", "def"], "ja-Latn")[0] == "ABC def"
    assert join_texts(["一 (OK)", "two"])[0] == "一 (OK) two"
    assert join_texts(["", "Eins.", "Zwei.", ""], "xx") == ("Eins. Zwei.", [0, 0, 6, 11])
    assert join_texts([]) == ("", [])


def test_only_known_choices():
    assert [checked_choice(choice) for choice in (None, "auto", "never", "always")] == [None, "auto", "never", "always"]
    with pytest.raises(UserError, match=r"split_sentences=yes.*auto, "):
        checked_choice("yes")


def test_answers_to_parts_are_those_of_each_text():
    asked, done = [], []

    def capitals(parts, on_progress):
        asked.append(parts)
        for _ in parts:
            on_progress(1)
        return map(str.upper, parts)

    parts = [["a", "b", "c"], [], ["d"], ["e", "f"]]
    assert answers_to_parts(capitals, parts, done.append) == [["A", "B", "C"], [], ["D"], ["E", "F"]]
    assert asked == [["a", "b", "c", "d", "e", "f"]] and done == [0, 1, 1, 0, 1, 1], "in texts, not in parts"
    assert ranks(["ab", "c", "def"]) == [["a", "c", "d"], ["b", "c", "e"], ["b", "c", "f"]]
