"""Roles of heads that are known, over ids and over the lines of files; the table and the picture."""

import logging
import types

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.pictures.head_roles import (
    SHARES,
    HeadRole,
    draw_head_roles,
    head_roles,
    role_table,
    roles_in_files,
)
from tests.visualization.attention_cases import make_translator, read_svg

EIGHT, THREE = [5] * 7 + [1], [5, 5, 1]


class Planted:
    """Has one layer of each kind with heads whose role is known; padding attends, too, as in a real model."""

    def attention_weights(self, features):
        found = {}
        for kind, query, key in (("encoder", "inputs", "inputs"), ("decoder", "targets", "targets")):
            batch, length = features[query].shape
            heads = np.zeros((batch, 4, length, length), np.float32)
            for row, ids in enumerate(features[key]):
                last = max((ids != 0).sum() - 1, 0)
                for at in range(length):
                    heads[row, 0, at, max(at - 1, 0)] = 1  # to the token before
                    heads[row, 1, at, last if kind == "encoder" else 0] = 1  # to EOS, or the beginning
                    heads[row, 2, at, : last + 1] = 1 / (last + 1)  # to all alike
                    heads[row, 3, at, max(at - 5, 0)] = 1  # far
            found[kind] = [heads]
        return found


def roles_of(**ids):
    return {(role.kind, role.head): role for role in head_roles(Planted(), ids)}


def test_roles_of_heads_that_are_known():
    roles = roles_of(inputs=[EIGHT])
    assert [*roles] == [("encoder", head) for head in (1, 2, 3, 4)]
    before, end, uniform, far = roles.values()
    assert before.shares == pytest.approx(dict.fromkeys(SHARES, 0.0) | {"previous": 7 / 8, "same": 1 / 8})
    assert (before.entropy, before.distance, before.role) == (0.0, pytest.approx(7 / 8), "previous")
    assert (end.shares["end"], end.role, end.distance) == (1.0, "end", 0.0)
    assert uniform.entropy == pytest.approx(np.log(8), rel=1e-5)
    # Of 8 x 7 pairs without EOS: |distance| = 1 on 7 + 6, 0 on 7, at least 5 on 2 + 1 and 3 + 2 + 1.
    assert uniform.shares == pytest.approx(
        {"previous": 7 / 64, "same": 7 / 64, "next": 6 / 64, "near": 27 / 64, "far": 9 / 64, "end": 8 / 64}
    )
    # The distances of these 56 pairs, summed for each query.
    assert uniform.distance == pytest.approx((21 + 16 + 13 + 12 + 13 + 16 + 21 + 28) / 56)
    assert far.shares["far"] == pytest.approx(3 / 8)
    assert far.distance == pytest.approx((0 + 1 + 2 + 3 + 4 + 5 + 5 + 5) / 8)


def test_the_decoders_beginning_is_an_end_and_not_its_last_token():
    roles = roles_of(inputs=[THREE], targets=[EIGHT])
    assert roles["decoder", 2].shares["end"] == 1.0
    assert roles["decoder", 1].shares == pytest.approx(dict.fromkeys(SHARES, 0.0) | {"previous": 6 / 8, "end": 2 / 8})


class PlantedEncoder(Planted):
    """Like `Planted`, with an additional position at the beginning, to which the last head attends."""

    def attention_weights(self, features):
        (heads,) = super().attention_weights(features)["encoder"]
        heads = np.pad(heads, ((0, 0), (0, 0), (1, 0), (1, 0)))
        heads[:, :, 0, 0], heads[:, 3] = 1, np.eye(heads.shape[-1])[0]
        return {"encoder": [heads]}


def test_the_additional_position_of_an_encoder_is_an_end_and_no_query():
    ids = {"inputs": [EIGHT, THREE]}
    *expected, _ = [role for role in head_roles(Planted(), ids) if role.kind == "encoder"]
    *found, beginning = head_roles(PlantedEncoder(), ids)
    assert found == expected and (beginning.shares["end"], beginning.distance) == (1.0, 0.0)


def test_each_query_counts_once_whatever_its_batch():
    """Padding of a shorter sentence counts for nothing, and a sum over batches is that over sentences."""
    together, alone = roles_of(inputs=[EIGHT, THREE] * 20), [roles_of(inputs=[row]) for row in (EIGHT, THREE)]
    for key, role in together.items():
        for name in SHARES:
            expected = (8 * alone[0][key].shares[name] + 3 * alone[1][key].shares[name]) / 11
            assert role.shares[name] == pytest.approx(expected)
        assert role.entropy == pytest.approx((8 * alone[0][key].entropy + 3 * alone[1][key].entropy) / 11)


def test_half_of_the_weight_is_a_role():
    for share, role in ((0.5, "far"), (0.49, "mixed")):
        shares = dict.fromkeys(SHARES, 0.0) | {"near": 0.4, "far": share, "end": 0.6 - share}
        assert HeadRole("encoder", 1, 2, 0.0, 0.0, shares).role == role


def test_table_and_picture_say_the_same():
    roles = head_roles(Planted(), {"inputs": [EIGHT, THREE], "targets": [THREE, EIGHT]})
    header, *lines = (line.split() for line in role_table(roles))
    drawing = draw_head_roles(roles)
    rectangles, _, texts = read_svg(drawing)
    bars = [box for box in rectangles if box["height"] == 14]
    assert len(lines) == len(roles) and len(bars) == len(roles) * len(SHARES)
    for number, (role, line) in enumerate(zip(roles, lines, strict=True)):
        cells = dict(zip(header, line, strict=True))
        assert (cells["kind"], cells["layer"], cells["head"]) == (role.kind, str(role.layer), str(role.head))
        own = bars[number * len(SHARES) :][: len(SHARES)]
        for name, bar in zip(SHARES, own, strict=True):
            assert bar["width"] / 200 == pytest.approx(role.shares[name], abs=1e-4)
            assert float(cells[name]) == pytest.approx(role.shares[name], abs=0.0051)
        assert sum(bar["width"] for bar in own) == pytest.approx(200, abs=0.05)
        assert {cells["entropy"], cells["distance"]} <= {text["text"] for text in texts if text["y"] == own[0]["y"] + 7}


@pytest.mark.slow
def test_roles_over_the_lines_of_files(tmp_path, caplog):
    translator = make_translator()
    text, target = tmp_path / "text", tmp_path / "target"
    text.write_text("ab\n\nabc\n" + "x" * 600 + "\n")
    target.write_text("b\nblank\ncd\nlong\n")
    with caplog.at_level(logging.WARNING, "t2t_lite"):
        roles = roles_in_files(translator, str(text), str(target))
    assert f"{text}: skipped 1 line with more than 512" in caplog.text
    roles_in_files(make_translator(position="learned", max_position=30), str(text), str(target))
    assert f"{text}: skipped 1 line with more than 30" in caplog.text
    ids = {"inputs": [[99, 100, 1], [99, 100, 101, 1]], "targets": [[100, 1], [101, 102, 1]]}
    assert roles == head_roles(translator.model, ids)
    assert {role.kind for role in roles} == {"encoder", "decoder", "memory"}
    assert all(sum(role.shares.values()) == pytest.approx(1) for role in roles)


@pytest.mark.slow
def test_texts_are_measured_as_the_model_reads_them(tmp_path):
    """For example, with symbols instead of protected texts."""
    translator = make_translator()
    problem = types.SimpleNamespace(
        task="sequence_to_sequence",
        features={"inputs": 2, "targets": 2},
        encoded_text=str.swapcase,
        encoded_target=lambda target, text: target + text,
    )
    answerer = types.SimpleNamespace(model=translator.model, encoders=translator.encoders, problem=problem)
    text, target = tmp_path / "text", tmp_path / "target"
    text.write_text("AB\n")
    target.write_text("b\n")
    encode = translator.encoders["inputs"].encode
    ids = {"inputs": [[*encode("ab"), 1]], "targets": [[*encode("bAB"), 1]]}
    assert roles_in_files(answerer, str(text), str(target)) == head_roles(translator.model, ids)


@pytest.mark.slow
def test_a_model_of_another_task_is_measured_over_its_text(tmp_path):
    translator = make_translator()
    problem = types.SimpleNamespace(task="classification", features={"inputs": 2, "targets": 2}, encoded_text=str)
    classifier = types.SimpleNamespace(model=translator.model, encoders=translator.encoders, problem=problem)
    (tmp_path / "text").write_text("ab\nabc\n")
    roles = roles_in_files(classifier, str(tmp_path / "text"))
    assert {role.kind for role in roles} == {"encoder"}
    with pytest.raises(UserError, match="task classification"):
        roles_in_files(classifier, str(tmp_path / "text"), str(tmp_path / "text"))


@pytest.mark.slow
def test_without_a_target_the_models_own_translations_are_measured(run_dir, tmp_path):
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(str(run_dir))
    (tmp_path / "text").write_text("the red house\na tree\n")
    roles = roles_in_files(translator, str(tmp_path / "text"))
    best = [found.hypotheses[0].ids for found in translator.translate(["the red house", "a tree"])]
    encode = translator.encoders["inputs"].encode
    ids = {"inputs": [[*encode("the red house"), 1], [*encode("a tree"), 1]], "targets": [[*b, 1] for b in best]}
    assert roles == head_roles(translator.model, ids)


@pytest.mark.parametrize(
    ("content", "targets", "words"),
    [
        (b"", None, "text: .*no sentences"),
        (b"\n \n", None, "text: .*no sentences"),
        (b"a\nb\n", b"a\n", "target has 1 line, .*text has 2"),
        (b"a\n", b"\n", "text: .*no sentences"),
    ],
)
def test_files_that_hold_nothing_to_measure(tmp_path, content, targets, words):
    (tmp_path / "text").write_bytes(content)
    (tmp_path / "target").write_bytes(targets or b"")
    with pytest.raises(UserError, match=words):
        roles_in_files(make_translator(), str(tmp_path / "text"), targets and str(tmp_path / "target"))


def test_of_an_image_model_they_are_measured_over_images_of_classes(eager, tmp_path):
    pytest.importorskip("t2t_lite.extras.images")
    pytest.importorskip("t2t_lite.extras.insights")
    from tests.extras.insights.media_models import image_generator

    (tmp_path / "classes").write_text("cat\nold dog\n")
    roles = roles_in_files(image_generator(), str(tmp_path / "classes"))
    assert [(role.kind, role.layer, role.head) for role in roles] == [("decoder", i, j) for i in (1, 2) for j in (1, 2)]
