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
    for view in ("heat_map", "grid", "map"):
        target = "--target=das rote Haus"
        result = call_command(
            COMMAND, "--output_dir=run", TEXT, target, "--kind=decoder", f"--view={view}", "--format=png"
        )
        assert (result.status, result.stdout) == (0, "attention.png\n"), result.stderr
        assert (attention_folder / "attention.png").read_bytes()[:4] == b"\x89PNG"


MISTAKES = {
    "no run": ([TEXT], ["--output_dir"]),
    "no number": (["--output_dir=run", TEXT, "--heads=a"], ["--heads=a"]),
    "not UTF-8": (["--output_dir=run", "--text=a\udcff"], ["--text", "UTF-8"]),
    "two formats": (["--output_dir=run", TEXT, "--output=a.svg", "--format=png"], ["--output=a.svg", "--format"]),
}


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(attention_folder, call_command, assert_user_error, flags, words):
    before = sorted(attention_folder.iterdir())
    assert_user_error(call_command(COMMAND, *flags), *words)
    assert sorted(attention_folder.iterdir()) == before
