"""Bach's chorales, from the published file."""

import gzip
import json

import pytest

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.extras.music.performance_encoder import ChoraleEncoder
from tests.data.stored import read_examples
from tests.extras.own_problems import check_names

ENCODER = ChoraleEncoder()
PIECE = [[60 + step % 3, 55, -1, 40] for step in range(200)]
NAME = "Jsb16thSeparated.json"


def generate(tmp_path, pieces, pack=gzip.compress, name=f"{NAME}.gz"):
    (tmp_path / name).write_bytes(pack(json.dumps({"train": pieces, "valid": pieces[::-1]}).encode()))
    registry.problem("music_jsb16").generate_data(str(tmp_path / "data"), str(tmp_path))


@pytest.mark.parametrize("packed", [True, False])
def test_pieces_come_back_from_rows(packed, tmp_path):
    generate(tmp_path, [PIECE, [[62, 55, 50, 40]]], *([] if packed else [bytes, NAME]))
    records = Records(registry.problem("music_jsb16"), str(tmp_path / "data"), "eval")
    rows = [row["targets"] for row in read_examples(records.paths)]
    assert list(map(len, rows)) == [5, 512, 289] and [row[-1] for row in rows] == [1, rows[1][-1], 1]
    assert rows[1] + rows[2][:-1] == [2 if pitch == -1 else 3 + pitch - 21 for step in PIECE for pitch in step]
    assert records.unit_counts() == {"id": 806, "note": 804}
    assert ENCODER.decode(rows[0]) == "62 55 50 40" and ENCODER.vocab_size == 91


BAD = {
    "of pitch 20": ([[60, 55, 20, 40]], "pitch 20.* 21 to 108, or -1"), "of pitch 109": ([[109] * 4], "pitch 109"),
    "of three voices": ([[60, 55, 40]], "4 pitches"), "of no steps": ({}, "list of steps"),
    "of fractions": ([[60.5, 55, 20, 40]], "4 pitches"), "of silence": ([[-1] * 4] * 3, "silence"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_pieces_are_named(kind, tmp_path):
    piece, message = BAD[kind]
    with pytest.raises(UserError, match=rf"{NAME}\.gz: train, piece 2: .*{message}"):
        generate(tmp_path, [PIECE, piece])


def test_a_file_that_is_cut_off_is_named(tmp_path):
    with pytest.raises(UserError, match=r"Jsb16thSeparated\.json\.gz: damaged or not gz"):
        generate(tmp_path, [PIECE], lambda data: gzip.compress(data)[:-9])
    with pytest.raises(UserError, match=r"Jsb16thSeparated\.json: "):
        (tmp_path / f"{NAME}.gz").unlink()
        generate(tmp_path, [PIECE], lambda data: data[:-9], NAME)


def test_what_an_input_is_called_and_what_an_evaluation_shows():
    check_names("music_own", "piece", "nats_per_note")
