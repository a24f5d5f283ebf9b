"""Which tokenization BLEU has, by the target language, a file's ending or a text."""

import pytest

from t2t_lite.data.problem import Problem
from t2t_lite.errors import UserError
from t2t_lite.evaluation import tokenizations
from t2t_lite.evaluation.tokenizations import (
    suggested_tokenization,
    ter_options_of,
    tokenization_of,
    tokenization_of_file,
    tokenization_of_problem,
)
from t2t_lite.settings.config import HParams

CHINESE, THAI, ENGLISH = ["我们今天去学校。"], ["ฉันรักประเทศไทย"], ["We go to school today."]


def suggested(lines):
    return suggested_tokenization(lines, lines)


class Translation(Problem):
    language_pair = ("en", "zh-Hant-TW")


@pytest.fixture(params=[False, True])
def has_mecab(request, monkeypatch):
    monkeypatch.setattr(tokenizations, "_is_installed", lambda name: request.param)
    return request.param


@pytest.mark.parametrize(
    "languages, expected",
    [
        ("zh zh-CN zh_Hans zh-Hant-TW zho zho_Hant cmn cmn_Hans yue wuu lzh chi cn nan-Hant", "zh"),
        ("th th-TH tha tha_Thai km khm lo lao my mya bur bo bod dz", "char"),
        ("en de ko kor vi sr-Latn zh-Latn ja_Latn xx", "13a"),
    ],
)
def test_of_languages(languages, expected):
    assert {code: tokenization_of(code) for code in languages.split()} == dict.fromkeys(languages.split(), expected)
    assert tokenization_of(None) == "13a"


def test_japanese_words_are_those_of_mecab_where_it_is_installed(has_mecab):
    expected = "ja-mecab" if has_mecab else "char"
    assert {tokenization_of(code) for code in ("ja", "ja-JP", "jpn", "jpn_Jpan")} == {expected}
    assert suggested(["私は本を読みます。"]) == expected


def test_of_files(tmp_path):
    assert tokenization_of_file("a/ref.zh", CHINESE) == tokenization_of_file("ref.zho_Hans.gz", CHINESE) == "zh"
    assert tokenization_of_file("ref.th", THAI) == "char"
    assert tokenization_of_file("ref.txt", CHINESE) == tokenization_of_file("-", CHINESE) == "13a"
    sides = "".join(f"<{tag} lang='{code}'><seg id='1'>x</seg></{tag}>" for tag, code in (("src", "ja"), ("ref", "zh")))
    (tmp_path / "set.xml").write_text(f"<dataset><doc>{sides}</doc></dataset>")
    assert tokenization_of_file(str(tmp_path / "set.xml"), CHINESE) == "zh"
    assert tokenization_of_file("out.my", ENGLISH) == "13a"  # which is hardly Burmese


def test_of_problems():
    assert tokenization_of_problem(Translation(), HParams()) == "zh"
    assert tokenization_of_problem(Translation(was_reversed=True), HParams()) == "13a"
    assert tokenization_of_problem(Translation(), HParams(eval_tokenization="char")) == "char"
    assert tokenization_of_problem(Problem(), HParams()) == tokenization_of_problem(None, HParams()) == "13a"
    with pytest.raises(UserError, match=r"eval_tokenization=13b: .* Nearest: 13a"):
        tokenization_of_problem(Translation(), HParams(eval_tokenization="13b"))


def test_what_is_suggested_for_a_text():
    assert (suggested(CHINESE), suggested(THAI)) == ("zh", "char")
    assert suggested([*CHINESE * 9, "他买了ＡＢＣ和一个「の」"]) == "zh"  # with a few other letters
    assert suggested(["▁a▁b"]) == "", "a short list of words"
    assert suggested(["▁a▁b" * 50]) == "char"
    assert suggested_tokenization(CHINESE, ["我 们 今 天 去 学 校"]) == "", "another tokenization splits it into words"


def test_ter_has_options_for_chinese_and_japanese_alone():
    assert ter_options_of("zh-CN") == ter_options_of("ja") == {"normalized": True, "asian_support": True}
    assert ter_options_of("th") == ter_options_of("ko") == ter_options_of(None) == {}
