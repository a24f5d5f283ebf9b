"""t2t-attention: pictures of a run's attention, and what it refuses."""
# Nearest tests of: bin/t2t_attention.py, bin/_trained.py

import xml.etree.ElementTree as ElementTree

import pytest

COMMAND, TEXT = "t2t-attention", "--text=the red house"


def texts_of(path):
    return [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.long
def test_pictures(attention_folder, call_command):
    result = call_command(COMMAND, "--output_dir=run", TEXT, "--target=das rote Haus")
    assert (result.status, result.stdout) == (0, "attention.svg\n"), result.stderr
    texts = texts_of(attention_folder / "attention.svg")
    assert {"Encoder self-attention, layer 1 of 2", "▁the", "<EOS>", "1", "2"} <= {*texts}
    flags = ["--kind=memory", "--layer=2", "--heads=2", "--word=Haus", "--whole_words", "--output=new/haus.svg"]
    assert call_command(COMMAND, "--output_dir=run", TEXT, "--target=das rote Haus", *flags).status == 0
    texts = texts_of(attention_folder / "new" / "haus.svg")
    assert {"Cross-attention, layer 2 of 2", "step that predicts: Haus", "house", "2"} <= {*texts} and "1" not in texts
    for view in ("heat_map", "grid"):
        result = call_command(COMMAND, "--output_dir=run", TEXT, "--kind=decoder", f"--view={view}", "--format=png")
        assert (result.status, result.stdout) == (0, "attention.png\n"), result.stderr
        assert (attention_folder / "attention.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.long
def test_a_map(attention_folder, call_command):
    flags = [TEXT, "--target=das rote Haus", "--kind=decoder", "--view=map", "--output=map.png"]
    result = call_command(COMMAND, "--output_dir=run", *flags)
    assert (result.status, result.stdout) == (0, "map.png\n"), result.stderr
    assert (attention_folder / "map.png").read_bytes()[:4] == b"\x89PNG"


MISTAKES = {
    "nothing to draw": (["--output_dir=run"], ["expected ", "--text"]),
    "no run": ([TEXT], ["--output_dir"]),
    "no checkpoint": (["--output_dir=empty", TEXT], ["empty", "no checkpoint"]),
    "layer": (["--output_dir=run", TEXT, "--layer=3"], ["layer=3", "2 layers"]),
    "head": (["--output_dir=run", TEXT, "--heads=1,9"], ["head=9", "2 heads"]),
    "no number": (["--output_dir=run", TEXT, "--heads=a"], ["--heads=a"]),
    "word": (["--output_dir=run", TEXT, "--target=Haus", "--word=zebra"], ["'zebra'", "the red house"]),
    "blank": (["--output_dir=run", "--text="], ["blank"]),
    "long": (["--output_dir=run", "--text=" + "the " * 25_000], ["tokens", "at most 200"]),
    "not UTF-8": (["--output_dir=run", "--text=a\udcff"], ["--text", "UTF-8"]),
    "no picture": (["--output_dir=run", TEXT, "--output=a.jpg"], ["--output=a.jpg", ".svg"]),
    "two formats": (["--output_dir=run", TEXT, "--output=a.svg", "--format=png"], ["--output=a.svg", "--format"]),
}


@pytest.mark.few(
    "word",
    "blank",
    "long",
    "nothing to draw",
    "no run",
    "no checkpoint",
    "no number",
    "not UTF-8",
    "no picture",
    "two formats",
)
@pytest.mark.slow
@pytest.mark.parametrize(("flags", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(attention_folder, call_command, assert_user_error, flags, words):
    before = sorted(attention_folder.iterdir())
    assert_user_error(call_command(COMMAND, *flags), *words)
    assert sorted(attention_folder.iterdir()) == before
