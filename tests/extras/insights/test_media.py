"""Images, music and a user's own files: what the API reads by the problem's readers, and makes by its writers."""

import base64
import io
import re
import wave

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.extras.images.png_files import png_bytes
from t2t_lite.extras.insights.app import create_app
from t2t_lite.extras.insights.media import LONGEST_FILE, MOST_GIVEN
from t2t_lite.extras.insights.models import Models
from t2t_lite.extras.music.midi_events import midi_bytes, read_midi
from tests.extras.insights.media_models import SIZE, dots_generator, image_generator, music_generator
from tests.extras.music.music import melody

pytestmark = pytest.mark.usefixtures("eager")

IMAGE = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)


@pytest.fixture(scope="module")
def models():
    return {"images": image_generator(), "music": music_generator(), "dots": dots_generator()}


@pytest.fixture(scope="module")
def client(models):
    return create_app(Models(models)).test_client()


def file(name, data):
    return {"name": name, "data": base64.b64encode(data).decode()}


def ids_of(hypothesis):
    return [token["id"] for token in hypothesis["tokens"]]


def content(answer, name):
    (found,) = answer["files"]
    assert found["name"] == name
    return base64.b64decode(found["data"])


def test_what_is_said_of_them(client, models):
    images, music, dots = client.get("/api/models").json
    assert (images["reads"], images["writes"], images["samples"]) == (["png"], {"png": "image/png"}, True)
    assert music["reads"] == ["mid", "midi"] and [*music["writes"]] == ["mid", "png", "wav"] and music["samples"]
    assert music["writes"]["wav"].startswith("audio/") and music["writes"]["png"] == "image/png"
    assert (dots["reads"], dots["samples"]) == (["dots"], False)
    assert dots["writes"] == {"png": "image/png", "txt": "text/plain"}
    assert images["attention"] == {"decoder": [2, 2]} and "patterns" in images["calls"] and "files" in dots["calls"]
    assert "patterns" not in music["calls"], "they see all that is earlier"


@pytest.mark.slow
def test_an_image_of_a_class(ask, models):
    status, found = ask("generate", text="old dog", beam_size=2, seed=3)
    assert status == 200 and [len(ids_of(one)) for one in found["hypotheses"]] == [24, 24]
    ids = ids_of(found["hypotheses"][1])
    status, answer = ask("files", text="old dog", target=ids, ending="png")
    pixels = tf.io.decode_png(content(answer, "output.png")).numpy()
    np.testing.assert_array_equal(pixels, models["images"].encoders["targets"].decode_image(ids))
    assert status == 200 and answer["given"] is None and answer["files"][0]["type"] == "image/png"


@pytest.mark.slow
def test_the_upper_half_of_an_image_is_completed_and_marked(ask):
    given = file("a b.PNG", png_bytes(IMAGE))
    status, found = ask("generate", file=given, beam_size=1)
    ids = ids_of(found["hypotheses"][0])
    assert status == 200 and len(ids) == 12 and len(found["prompt_tokens"]) == 13
    answer = ask("files", file=given, target=ids, ending="png")[1]
    pixels = tf.io.decode_png(content(answer, "output.png")).numpy()
    np.testing.assert_array_equal(pixels[:2], IMAGE[:2])
    assert answer["given"] == [0, 0, 1, 0.5]
    alone = tf.io.decode_png(content(ask("files", file=given, target=[], ending="png")[1], "output.png")).numpy()
    np.testing.assert_array_equal(alone, np.concatenate([IMAGE[:2], np.zeros_like(IMAGE[2:])]))


@pytest.mark.long
def test_attention_and_steps_of_a_file(ask, models):
    given = file("a.png", png_bytes(IMAGE))
    ids = ids_of(ask("generate", file=given, beam_size=1)[1]["hypotheses"][0])
    status, steps = ask("steps", file=given, target=ids, top=2)
    assert status == 200 and [step["id"] for step in steps["steps"]] == ids
    attention = ask("attention", file=given, target=ids)[1]["decoder"]
    encoder = models["images"].encoders["targets"]
    row = [2, *encoder.encode_image(IMAGE[:2]), *ids]
    expected = models["images"].model.attention_weights({"targets": np.array([row], "int32")})["decoder"]
    np.testing.assert_allclose(attention["weights"], [layer[0] for layer in expected], atol=1e-5)
    assert attention["queries"] == encoder.pieces(row)
    status, answer = ask("attention_map", file=given, target=ids)
    assert status == 200 and (answer["layer"], answer["layers"]) == (1, 2)
    assert base64.b64decode(answer["picture"]["data"]).startswith(b"\x89PNG")


@pytest.mark.slow
def test_patterns_are_drawn_of_any_length(ask):
    sizes = []
    for request in ({}, {"length": 7}):
        status, answer = ask("patterns", **request)
        assert status == 200 and base64.b64decode(answer["picture"]["data"]).startswith(b"\x89PNG")
        sizes.append(answer["length"])
    assert sizes == [256, 7]
    status, answer = ask("patterns", length=5000)
    assert status == 400 and answer["error"] == "length=5000: expected a whole number from 2 to 2,048."


@pytest.mark.slow
def test_music_is_continued_and_heard(ask, models, tmp_path):
    encoder, notes = models["music"].encoders["targets"], melody(7, count=4)
    given = file("primer.mid", midi_bytes(notes))
    status, found = ask("generate", model="music", file=given, beam_size=2, max_new_tokens=9)
    assert status == 200 and len(found["hypotheses"]) == 2
    ids = ids_of(found["hypotheses"][0])
    files = {}
    for ending in ("mid", "png", "wav"):
        answer = ask("files", model="music", file=given, target=ids, ending=ending)[1]
        files[ending] = content(answer, f"output.{ending}")
        assert answer["given"] is None, "the picture has a line of its own"
    (tmp_path / "out.mid").write_bytes(files["mid"])
    kept = encoder.decode_notes(encoder.encode_notes(read_midi_of(midi_bytes(notes), tmp_path)))
    found = read_midi(str(tmp_path / "out.mid"))
    assert all(any(abs(a.start - b.start) < 0.01 and a.pitch == b.pitch for b in found) for a in kept)
    with wave.open(io.BytesIO(files["wav"])) as sound:
        seconds = sound.getnframes() / sound.getframerate()
    assert max(note.end for note in found) <= seconds + 0.01
    assert tf.io.decode_png(files["png"]).shape[0] == 88 * 4 + 8


def read_midi_of(data, folder):
    (folder / "in.mid").write_bytes(data)
    return read_midi(str(folder / "in.mid"))


@pytest.mark.slow
def test_a_user_s_own_files_are_read_and_written(ask, models):
    status, found = ask("generate", model="dots", file=file("a.dots", b"abba\n"), beam_size=1, max_new_tokens=5)
    assert (
        status == 200
        and found["continuation"] == models["dots"].generate(["abba"], beam_size=1, max_new_tokens=5)[0].text
    )
    answer = ask("files", model="dots", text="ab", target=[3, 4, 1], ending="txt")[1]
    assert content(answer, "output.txt") == b"[('ab', [[3, 4]])]"
    picture = content(ask("files", model="dots", text="ab", target=[3, 4, 1], ending="png")[1], "output.png")
    assert tf.io.decode_png(picture).shape == (1, 2, 1)
    status, answer = ask("generate", model="dots", file=file("a.dots", b"ab ba\n"))
    assert status == 400 and answer["error"] == "a.dots: contains 2 inputs. Expected one."


BAD = {  # functions, since TensorFlow must not compute before the tests
    "another size": (lambda: file("a.png", png_bytes(IMAGE[:, :1])), "1x4, RGB.* 2x4, RGB"),
    "a grid": (lambda: file("a.png", png_bytes(np.tile(IMAGE, (2, 2, 1)))), "4 inputs"),
    "no image": (lambda: file("a.png", b"hello"), "PNG"),
    "cut off": (lambda: file("../x/a.png", png_bytes(IMAGE)[:60]), "damaged"),
    "another format": (lambda: file("a.jpg", b"x"), r"cannot read such a file.* \.png"),
    "no base64": (lambda: {"name": "a.png", "data": "%"}, "base64"),
    "too many bytes": (lambda: file("a.png", bytes(LONGEST_FILE + 1)), "150,001 bytes.* 150,000"),
    "as many bytes as may be": (lambda: file("a.png", bytes(LONGEST_FILE)), "PNG"),
    "no name": (lambda: {"data": ""}, "request: 'file': 'name' is missing"),
    "a text": (lambda: "a.png", "request: 'file': .*'a.png'"),
}


@pytest.mark.parametrize(("given", "words"), BAD.values(), ids=BAD)
def test_bad_files_are_one_line(ask, given, words):
    given = given()
    status, answer = ask("generate", file=given)
    name = given.get("name", "request") if isinstance(given, dict) else "request"
    assert status == 400 and answer["error"].startswith(f"{name}: ") and "\n" not in answer["error"]
    assert re.search(words, answer["error"])


def test_bad_music_is_one_line(ask):
    long = midi_bytes(melody(1, count=MOST_GIVEN // 3))
    for data, words in {
        b"": "a.mid: is empty. Expected a Standard MIDI File.",
        midi_bytes([]): "a.mid: has no notes.",
        long[: LONGEST_FILE // 9 * 8]: "a.mid: ",
        midi_bytes(melody(1, count=40)): "a.mid: ",
    }.items():
        status, answer = ask("generate", model="music", file=file("a.mid", data))
        assert status == 400 and answer["error"].startswith(words) and "\n" not in answer["error"]
    assert "The model reads at most 64, including the continuation. Shorten the prompt." in answer["error"]
    status, answer = ask("generate", model="music", file=file("a.mid", long))
    assert status == 400 and f"ids. Expected at most {MOST_GIVEN:,}. Shorten the file." in answer["error"]


OTHERS = {
    "no class": ("generate", {"text": "cow"}, "text: 'cow' .*cat, old dog"),
    "both": ("generate", {"text": "cat", "file": file("a.png", b"")}, "request: .* either a 'text' or a 'file'"),
    "neither": ("generate", {}, "request: .* either a 'text' or a 'file'"),
    "an ending": ("files", {"text": "cat", "target": [9], "ending": "mid"}, "ending='mid' .*png"),
    "a large id": ("files", {"text": "", "target": [10**6], "ending": "png"}, "target: id 1000000 is outside"),
    "a text for ids": ("files", {"text": "cat", "target": ["a"], "ending": "png"}, r"target: \['a'\]: "),
    "no id at the end": ("files", {"text": "cat", "target": [9, 1.0], "ending": "png"}, "target: .*1.0"),
    "no id at the end of a map": ("attention_map", {"text": "cat", "target": [9, 1.0]}, "target: .*1.0"),
    "many ids": ("files", {"text": "", "target": [9] * 20_000, "ending": "png"}, "target: 20,000 ids"),
    "a large picture": ("attention_map", {"text": "", "target": [9] * 1200}, "text: 1,201 tokens.* 1,100"),
    "no layer": ("attention_map", {"text": "cat", "target": [9], "layer": 3}, "layer=3: .* 2 layers"),
    "another's file": ("generate", {"model": "dots", "file": file("a.png", b"")}, "a.png: "),
}


@pytest.mark.parametrize(("call", "request_", "words"), OTHERS.values(), ids=OTHERS)
def test_other_mistakes(ask, call, request_, words):
    status, answer = ask(call, **request_)
    assert status == 400 and re.match(words, answer["error"])
