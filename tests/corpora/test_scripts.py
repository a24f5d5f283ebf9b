"""Scripts of letters and languages, and which texts have no spaces between words."""

import pytest

from t2t_lite.corpora.scripts import is_language, lacks_spaces, script_of, scripts_of, scripts_without_spaces, subtags
from t2t_lite.errors import UserError


@pytest.mark.parametrize(
    ("characters", "script"),
    [
        ("aß\uff41", "LATIN"),
        ("ж", "CYRILLIC"),
        ("漢々", "CJK"),
        ("ーカ\uff76", "KATAKANA"),
        ("ひ", "HIRAGANA"),
        ("한", "HANGUL"),
        ("ع", "ARABIC"),
        ("א", "HEBREW"),
        ("ह", "DEVANAGARI"),
        ("1 !ºµⁿ€\u0301", ""),
    ],
)
def test_scripts_of_characters(characters, script):
    assert {script_of(character) for character in characters} == {script}


def test_languages_with_public_corpora_have_scripts():
    codes = "ar cs de el en es et fa fi fr gu he hi hy id it ja ka ko lv mk nl pl pt ro ru sv th tn tr uk vi zh"
    assert all(map(scripts_of, codes.split()))


@pytest.mark.parametrize(
    ("language", "scripts", "without_spaces"),
    [
        ("de", {"LATIN"}, set()),
        ("EN-us", {"LATIN"}, set()),
        ("ja", {"CJK", "HIRAGANA", "KATAKANA"}, {"CJK", "HIRAGANA", "KATAKANA"}),
        ("ja-Latn", {"LATIN"}, set()),
        ("zh_TW", {"CJK", "BOPOMOFO"}, {"CJK", "BOPOMOFO"}),
        ("zh-Hant-HK", {"CJK"}, {"CJK"}),
        ("ko", {"HANGUL", "CJK"}, set()),
        ("th", {"THAI"}, {"THAI"}),
        ("my", {"MYANMAR"}, {"MYANMAR"}),
        ("sr", {"LATIN", "CYRILLIC"}, set()),
        ("sr-Cyrl", {"CYRILLIC"}, set()),
        ("qq-Latn", {"LATIN"}, set()),
    ],
)
def test_scripts_of_languages(language, scripts, without_spaces):
    assert scripts_of(language) == scripts and scripts_without_spaces(language) == without_spaces


def test_languages_that_are_not_known():
    with pytest.raises(UserError, match=r"'qq_DE'.*--languages .* qq-Latn"):
        scripts_of("qq_DE")
    assert scripts_without_spaces("qq") == scripts_without_spaces(None) == scripts_without_spaces("") == set()
    assert [is_language(code) for code in ("de", "jpn", "qq", "de-AT")] == [True, True, False, False]
    assert subtags("zh_Hant-HK") == ["zh", "hant", "hk"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["我们 今天去学校了吧", "他"], True),
        (["一二三四 五六七八"], False),  # one space for eight characters
        (["一二三四五 六七八九"], True),  # for nine
        (["你好 hello"], False),  # half of the letters
        (["The house is old."], False),
        (["Haus", "Donaudampfschifffahrt"], False),  # words of a list
        (["x" * 40], False),
        (["x" * 41], True),
        (["x" * 60 + " " + "y" * 60, ""], True),
        (["nineteen letters xxxx " * 6], False),
        ([""], False),
        ([], False),
        ([*["a b c"] * 1000, *["一" * 99] * 1000], False),  # only the first lines count
    ],
)
def test_lines_without_spaces(lines, expected):
    assert lacks_spaces(lines) is expected
