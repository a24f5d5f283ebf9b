"""The page of t2t-insights-server in a real browser: what it draws and writes is what the JSON API answers."""

import base64
import json
import math
import pathlib
import re
import struct
import xml.etree.ElementTree as ElementTree
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.extras.images.png_files import png_bytes
from tests.browser import accessibility
from tests.extras.insights.media_models import SIZE
from tests.extras.insights.page import Page

pytestmark = pytest.mark.slow

TEXT = "a red house"
HOSTILE = '<img src=x onerror="document.title=1"> \u202e & "quoted" </p>'
SMALLEST = 0.01
SIZES = [(1280, "light"), (400, "dark"), (400, "light"), (1280, "dark")]


@pytest.fixture
def open_page(chromium, address):
    """Returns a function of a state that opens the page; nothing may fail in the browser, or come from elsewhere."""
    chromium.get_log("browser")
    yield lambda width=1280, scheme="light", **state: Page(chromium, address, width, scheme, **state)
    errors = [entry["message"] for entry in chromium.get_log("browser") if " 400 " not in entry["message"]]
    names = chromium.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert not errors and names and all(name.removeprefix("blob:").startswith(address) for name in names)
    assert not chromium.get_cookies()


def best_of(ask, **request):
    tokens = ask("translate", **request)[1]["hypotheses"][0]["tokens"]
    return [token["id"] for token in tokens]


def drawn(weights, heads):
    """Returns the edges that a picture of [heads][queries][keys] has to show."""
    return {
        (head, query, key): weight
        for head in heads
        for query, row in enumerate(weights[head - 1])
        for key, weight in enumerate(row)
        if weight >= SMALLEST
    }


def percent(log_prob):
    return 100 * math.exp(log_prob)


def shown_numbers(texts):
    return [float(re.search(r"([\d.e+-]+) %", text)[1]) for text in texts]


@pytest.mark.few("1280-light")
@pytest.mark.parametrize(("width", "scheme"), SIZES[:2])
def test_a_typed_sentence_is_translated(open_page, ask, width, scheme):
    page = open_page(width, scheme)
    page.type(TEXT)
    expected = ask("translate", text=TEXT)[1]
    hypotheses = expected["hypotheses"]
    assert page.run("return arguments[0].textContent", page.one(".translation")) == expected["translation"]
    assert [float(text) for text in page.texts(".hypotheses .number")] == pytest.approx(
        [one["score"] for one in hypotheses], abs=1e-4
    )
    for chosen in (0, 2):
        if chosen:
            page.click(".hypothesis", chosen)
            page.wait_for_answer()
        tokens = hypotheses[chosen]["tokens"]
        page.wait(lambda tokens=tokens: len(page.all(".step")) == len(tokens))
        assert shown_numbers(page.texts(".step")) == pytest.approx([percent(t["log_prob"]) for t in tokens], rel=0.01)
        assert page.one(".hypothesis[aria-pressed=true]").text.startswith(page.all(".hypothesis")[chosen].text)


@pytest.mark.long
def test_an_alternative_is_forced(open_page, ask):
    page = open_page(text=TEXT)
    ids = best_of(ask, text=TEXT)
    step = ask("steps", text=TEXT, target=ids, top=10)[1]["steps"][2]
    page.click(".step", 2)
    page.wait(lambda: page.all(".alternatives li"))
    shown = shown_numbers(page.texts(".alternatives li"))
    assert shown == pytest.approx([percent(one["log_prob"]) for one in step["alternatives"]], rel=0.01)
    at = next(at for at, one in enumerate(step["alternatives"]) if one["id"] not in (1, ids[2]))
    prefix = [*ids[:2], step["alternatives"][at]["id"]]
    page.click(".alternatives li button", at)
    page.wait(lambda: page.all(".forced"))
    page.wait_for_answer()
    forced = ask("translate", text=TEXT, prefix=prefix)[1]["hypotheses"][0]["tokens"]
    assert [token["id"] for token in forced[:3]] == prefix
    assert shown_numbers(page.texts(".step")) == pytest.approx([percent(t["log_prob"]) for t in forced], rel=0.01)
    page.click(".forced button")
    page.wait(lambda: not page.all(".forced") and len(page.all(".step")) == len(ids))
    page.wait_for_answer()


@pytest.mark.few("400")
@pytest.mark.parametrize("width", [1280, 400])
def test_attention_is_drawn_as_the_api_answers(open_page, ask, width):
    page = open_page(width, text=TEXT)
    found = ask("attention", text=TEXT, target=best_of(ask, text=TEXT))[1]
    for kind, one in found.items():
        page.choose("Kind", kind)
        for layer, weights in enumerate(one["weights"], 1):
            page.choose("Layer", layer)
            page.choose("View", "lines")
            assert page.edges() == drawn(weights, (1, 2)) != {}
            page.choose("View", "heat_maps")
            assert page.edges() == drawn(weights, (1, 2))
    mean = np.mean(found["memory"]["weights"][max(0, len(found["memory"]["weights"]) - 2)], 0)
    alignment = page.edges(".alignment .picture")
    assert alignment == pytest.approx(drawn([mean], [1]), abs=1e-9)


def test_heads_and_tokens(open_page, ask):
    page = open_page(text=TEXT, kind="encoder", layer=1)
    weights = ask("attention", text=TEXT)[1]["encoder"]["weights"][0]
    page.click(".heads button", 0)
    assert page.edges() == drawn(weights, [2])
    page.double_click(page.all(".heads button")[0])
    assert page.edges() == drawn(weights, [1])
    page.click(".explorer .row > button")
    assert page.edges() == drawn(weights, (1, 2))

    def of(side, at):
        return {edge: weight for edge, weight in drawn(weights, (1, 2)).items() if edge[side] == at}

    page.point_at(page.all("[data-side=query]")[3])
    assert page.edges() == of(1, 3)
    largest = sorted(weights[0][3])[-1]
    assert f"{largest:.3f}" in page.one(".explorer .note").text
    page.point_at(page.all("[data-side=key]")[5])
    assert page.edges() == of(2, 5)
    page.point_at(page.one("h1"))
    assert page.edges() == drawn(weights, (1, 2))
    page.run("document.querySelector('.token[tabindex=\"0\"]').focus()")
    assert page.edges() == of(1, 0)
    page.press("\ue015", "\ue014")  # down, right
    assert page.edges() == of(2, 1)
    page.press(" ")
    page.run("document.activeElement.blur()")
    assert page.edges() == of(2, 1)


def test_a_given_target_is_scored(open_page, ask):
    page = open_page(text=TEXT)
    page.type("ein Haus", "target")
    expected = ask("steps", text=TEXT, target="ein Haus")[1]
    assert f"{expected['log_prob']:.3f} nats" in page.one("article").text
    assert shown_numbers(page.texts(".step")) == pytest.approx(
        [percent(step["log_prob"]) for step in expected["steps"]], rel=0.01
    )


_NODES = """
return [...document.querySelectorAll('[data-node]')].sort((a, b) => a.dataset.node - b.dataset.node).map((node) =>
    [...[0, 1].map((at) => node.querySelectorAll('text')[at]?.textContent), node.querySelector('.best') !== null]);
"""


@pytest.mark.long
def test_the_beam_s_tree_is_drawn(open_page, ask):
    page = open_page(text=TEXT, beam=2)
    page.click(".tree summary")
    page.wait(lambda: page.all(".tree .picture"))
    tree = ask("beam", text=TEXT, beam_size=2)[1]
    assert len(page.all("[data-node]")) == len(tree["nodes"])
    assert len(page.all(".tree .edge")) == len(tree["nodes"]) - 1
    best, path = tree["hypotheses"][0], set()
    while best is not None:
        path.add(best)
        best = tree["nodes"][best]["parent"]
    shown = page.run(_NODES)
    assert {at for at, (_, _, is_best) in enumerate(shown) if is_best} == path
    assert [token for token, *_ in shown[1:]] == [node["token"] for node in tree["nodes"][1:]]
    assert [score for _, score, _ in shown[1:]] == [f"{node['score']:.3f}" for node in tree["nodes"][1:]]


@pytest.mark.long
def test_two_checkpoints_side_by_side(open_page, ask):
    page = open_page(text=TEXT)
    page.click("#models input", 1)
    page.wait_for_answer(2)
    boxes = [article.rect for article in page.all("article")]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    for at, name in enumerate(("small", "other")):
        expected = ask("translate", text=TEXT, model=name)[1]["hypotheses"]
        numbers = page.all("article")[at].find_elements("css selector", ".hypotheses .number")
        assert [float(one.text) for one in numbers] == pytest.approx([one["score"] for one in expected], abs=1e-4)
    assert page.chromium.current_url.endswith("models=small&models=other")


@pytest.mark.long
def test_language_models_and_classifiers(open_page, ask):
    page = open_page(text="abbac", models="lm")
    found = ask("generate", text="abbac", model="lm")[1]
    assert page.run("return arguments[0].textContent", page.one(".translation")) == f"abbac{found['continuation']}"
    tokens = found["hypotheses"][0]["tokens"]
    assert shown_numbers(page.texts(".step")) == pytest.approx([percent(t["log_prob"]) for t in tokens], rel=0.01)
    ids = [token["id"] for token in tokens]
    weights = ask("attention", text="abbac", target=ids, model="lm")[1]["decoder"]["weights"][0]
    assert page.edges() == drawn(weights, range(1, len(weights) + 1))
    page = open_page(text="3 4", models="classifier")
    found = ask("predict", text="3 4", model="classifier")[1]
    assert page.one(".translation").text == found["label"]
    assert shown_numbers(page.texts(".shares li")) == pytest.approx(
        [100 * one["probability"] for one in found["probabilities"]], rel=0.01
    )
    assert not page.one("#beam").is_displayed() and not page.one("#second").is_displayed()


def test_a_question_is_answered_from_its_context(open_page):
    page = open_page(text="3 4", second="7 8 9", models="questions")
    assert page.one("#second").is_displayed() and page.one(".translation").text == "8 9"
    lines = page.texts(".shares li")
    assert len(lines) == 5 and lines[0].startswith("8 9")


_PIXELS = """
return [...document.querySelectorAll('.frame img')].map((image) => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    canvas.getContext('2d').drawImage(image, 0, 0);
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return [image.width, image.height, canvas.width, canvas.height, [...pixels]];
});
"""


def shown_images(page):
    """Returns [(width and height on the page, uint8 [rows, columns, 3])]."""
    found = []
    for *size, width, height, pixels in page.run(_PIXELS):
        found.append((size, np.array(pixels, np.uint8).reshape(height, width, 4)[..., :3]))
    return found


@pytest.mark.long
def test_images_of_a_class(open_page, ask, eager, downloads):
    page = open_page(text="cat", models="images", beam=1, seed=2**31 - 1)
    best = ask("generate", text="cat", model="images", beam_size=1, seed=2**31 - 1)[1]["hypotheses"][0]
    target = [token["id"] for token in best["tokens"]]
    ((size, pixels),) = shown_images(page)
    assert size == [98, 196], "a whole number of times as large"
    (file,) = ask("files", text="cat", model="images", target=target, ending="png")[1]["files"]
    np.testing.assert_array_equal(pixels, tf.io.decode_png(base64.b64decode(file["data"])))
    assert not page.all(".given-part") and not page.all(".translation") and not page.all(".tree")
    assert page.one("#beam-name").text == "Samples" and page.one("#seed").is_displayed()
    assert not page.one("#target").is_displayed() and len(page.all(".step")) == 24
    page.click("[aria-label='Download output as PNG']")
    page.wait(pathlib.Path(downloads, "output.png").exists)
    assert pathlib.Path(downloads, "output.png").read_bytes() == base64.b64decode(file["data"])
    for at, words in enumerate(("Attention, layer 1", "Which positions see which")):
        page.all("details summary")[at].click()
        page.wait(lambda words=words: page.all(f"details img[alt='{words}']"))
    assert all(page.run("return [...document.querySelectorAll('details img')].map((one) => one.naturalWidth)"))


@pytest.mark.long
def test_an_image_that_is_given_is_completed_and_marked(open_page, eager, tmp_path):
    image = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)
    for name, pixels in (("whole.png", image), ("wide.png", np.tile(image, (1, 2, 1))[:, :3])):
        (tmp_path / name).write_bytes(png_bytes(pixels))
    page = open_page(text="cat", models="images", beam=1)
    ((_, sample),) = shown_images(page)
    page.one("#file").send_keys(str(tmp_path / "whole.png"))
    page.one("#ask").click()
    page.wait_for_answer()
    given, made = (pixels for _, pixels in shown_images(page))
    np.testing.assert_array_equal(given[:2], image[:2])
    np.testing.assert_array_equal(made[:2], image[:2])
    assert not given[2:].any()
    parts = [(part.rect["height"], part.rect["width"]) for part in page.all(".given-part")]
    assert parts == [(98, 98)] * 2, "the upper half of 196 by 98 pixels"
    page.one("#file").send_keys(str(tmp_path / "wide.png"))
    page.one("#ask").click()
    page.wait(lambda: page.all("[role=alert]"))
    assert page.one("[role=alert]").text == "wide.png: is 3x4, RGB. Expected one image or a grid of images of 2x4, RGB."
    (tmp_path / "large.png").write_bytes(bytes(200_000))
    page.one("#file").send_keys(str(tmp_path / "large.png"))
    page.one("#ask").click()
    page.wait(lambda: page.texts("[role=alert]") == ["large.png: 200,000 bytes. Expected at most 150,000."])
    page.one("#no-file").click()
    assert page.one("#file").get_property("value") == ""
    page.one("#file").send_keys(str(tmp_path / "whole.png"))
    page.chromium.back()
    page.wait(lambda: len(page.all(".frame img")) == 1)
    np.testing.assert_array_equal(shown_images(page)[0][1], sample)
    assert page.one("#text").get_property("value") == "cat" and page.one("#file").get_property("value") == ""


def test_the_address_holds_what_is_shown(open_page, ask):
    page = open_page()
    page.type(TEXT)
    page.click(".hypothesis", 1)
    page.wait_for_answer()
    page.choose("Kind", "encoder")
    page.choose("Layer", 2)
    page.click(".heads button", 0)
    state = {name: values[0] for name, values in parse_qs(urlsplit(page.chromium.current_url).fragment).items()}
    assert state == {"text": TEXT, "hypothesis": "2", "kind": "encoder", "layer": "2", "heads": "2"}
    shown = page.texts(".step"), page.edges()
    again = open_page(**state)
    assert (again.texts(".step"), again.edges()) == shown
    again.type("another")
    again.chromium.back()
    again.wait(lambda: again.texts(".step") == shown[0])
    again.wait_for_answer()
    assert again.one("#text").get_property("value") == TEXT


@pytest.mark.long
def test_downloads(open_page, ask, downloads):
    page = open_page(text=TEXT, kind="encoder", layer=1, heads="2")
    encoder = ask("attention", text=TEXT)[1]["encoder"]

    def saved(name):
        path = pathlib.Path(downloads, name)
        path.unlink(missing_ok=True)
        kind, ending = path.stem, path.suffix[1:].upper()
        page.click(f"[aria-label='Download {kind} as {ending}']")
        page.wait(path.exists)
        return path.read_bytes()

    svg = ElementTree.fromstring(saved("attention.svg"))
    weights = [float(line.get("stroke-opacity")) for line in svg.iter("{http://www.w3.org/2000/svg}line")]
    assert sorted(weights) == sorted(drawn(encoder["weights"][0], [2]).values())
    png = saved("attention.png")
    assert png.startswith(b"\x89PNG")
    assert struct.unpack(">II", png[16:24]) == tuple(2 * int(svg.get(side)) for side in ("width", "height"))
    data = json.loads(saved("attention.json"))
    assert data["weights"] == [encoder["weights"][0][1]] and data["queries"] == encoder["queries"]
    assert json.loads(saved("alignment.json"))["keys"] == encoder["queries"]
    assert b"<svg" in saved("alignment.svg") and saved("alignment.png").startswith(b"\x89PNG")
    assert len(json.loads(saved("output.json"))["hypotheses"]) == 4


@pytest.mark.long
@pytest.mark.parametrize(("model", "is_forced"), [("other", True), ("lm", False)])
def test_ids_are_forced_only_with_the_vocabulary_that_they_belong_to(open_page, model, is_forced):
    assert bool(open_page(text="abbac", models=model, prefix="5", prefix_of="small").all(".forced")) == is_forced


def test_errors_are_shown_in_the_page(open_page):
    page = open_page(text=TEXT)
    page.type("a" * 300)
    assert "A picture shows at most 200" in page.one("[role=alert]").text
    page.type(TEXT)
    assert not page.all("[role=alert]") and page.all(".alignment")
    page = open_page(text=TEXT, prefix="999999", prefix_of="small")
    assert "id 999999 is outside" in page.one("[role=alert]").text


def test_hostile_text_is_text(open_page):
    page = open_page()
    page.type(HOSTILE)
    page.type(HOSTILE, "target")
    assert not page.all("img") and page.chromium.title == "t2t_lite insights"
    assert "\u202e" not in page.one("article").text
    assert page.run("return arguments[0].textContent", page.one(".translation")) == HOSTILE.replace("\u202e", "\ufffd")


_COLORS = """
const fill = (element) => getComputedStyle(element).fill.match(/[0-9]+/g).map(Number);
return [...document.querySelectorAll('.picture text')].map((text) =>
    [fill(text), fill(text.closest('.picture').querySelector('.paper'))]);
"""


def contrast(*colors):
    """Returns the contrast ratio of two colours, as WCAG 2 defines it."""
    parts = np.array(colors) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    darker, lighter = sorted(linear @ (0.2126, 0.7152, 0.0722))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.few("400-dark")
@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_everyone_can_use_it(open_page, width, scheme):
    """No violation of axe's rules, contrast AA among them; wide content scrolls inside its box."""
    page = open_page(width, scheme, text=TEXT)
    page.click(".step")
    page.wait(lambda: page.all(".alternatives li"))
    found = accessibility(page.chromium, width, "{exclude: [['.head']]}")
    # axe leaves pictures undecided, for lines may cover their texts: text on paper alone.
    undecided = [node["html"] for one in found["incomplete"] for node in one["nodes"]]
    assert not [node for node in undecided if not node.startswith(("<text", '<div class="scroll"'))]
    colors = page.run(_COLORS)
    assert len(colors) > 1 and all(contrast(text, paper) >= 4.5 for text, paper in colors)
