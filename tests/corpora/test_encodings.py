"""Text in UTF-8 that was read in another encoding, and correct text that looks like it."""

import time

import pytest

from t2t_lite.corpora.encodings import is_mojibake

TEXTS = (
    "größe", "Über alles", "don’t", "GRÖSSE", "Привет мир", "中文测试", "café", "naïve", "10 €", "Ελλάδα",
    "à la", "日本",
)  # fmt: skip


@pytest.mark.parametrize("encoding", ["latin1", "cp1252"])
@pytest.mark.parametrize("text", TEXTS)
def test_utf8_that_was_read_in_another_encoding(text, encoding):
    assert not is_mojibake(text)
    read = text.encode().decode(encoding, "replace")
    assert is_mojibake(read)
    if "\ufffd" not in read:
        assert is_mojibake(f"It is {read}, “say” the others – größer.")


@pytest.mark.parametrize("encoding", ["cp1250", "cp1251", "cp437", "mac_roman"])
def test_whole_texts_of_other_encodings(encoding):
    for text in ("zażółć gęślą", "größe", "Привет мир", "“Ελλάδα”"):
        try:
            read = text.encode().decode(encoding)
        except UnicodeDecodeError:
            continue
        assert is_mojibake(read), read


@pytest.mark.parametrize(
    "text",
    ["CAFÉ™", "«IRMÃ»", "cos'è…”", "Je vais au café…”", "MENÜ”", "Spaß™", "США…", "СССР»", "Рівне", "NÃO", "AÇÕES",
     "ĐÃ”", "—École", "Œuvre…", "ÂNGULO", "łódź", "¿Qué?", "Côte d’Azur", "«À»", "İstanbul"],
)  # fmt: skip
def test_correct_text_is_none(text):
    assert not is_mojibake(text)


def test_what_could_not_be_read():
    assert is_mojibake("gr\ufffd\ufffde")


@pytest.mark.parametrize("unit", ["Ã", "é", "ã€", "\x80", "中", "Р", "Рі", "é…"])
def test_the_time_is_linear(unit):
    start = time.process_time()
    is_mojibake(unit * 10**5)
    assert time.process_time() - start < 2
