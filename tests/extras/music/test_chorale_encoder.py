"""Pieces in four voices."""

from t2t_lite.extras.music.midi_events import Note
from t2t_lite.extras.music.performance_encoder import ChoraleEncoder

ENCODER = ChoraleEncoder()


def test_held_notes_are_one_and_voices_are_tracks():
    notes = ENCODER.decode_notes(ENCODER.encode("60 - 50 40 60 - 51 40 62 - 51 40"))
    assert notes == [
        Note(0, 0.25, 60), Note(0, 0.125, 50, track=2), Note(0, 0.375, 40, track=3), Note(0.125, 0.375, 51, track=2),
        Note(0.25, 0.375, 62),
    ]  # fmt: skip
    assert ENCODER.decode(ENCODER.encode_notes([note._replace(track=9) for note in notes])) == (
        "60 50 40 - 60 51 40 - 62 51 40 -"
    ), "of one track, voices are told by their pitches"
    four = [*notes, Note(0, 0.125, 41, track=1)]
    assert ENCODER.decode(ENCODER.encode_notes(four)) == "60 41 50 40 60 - 51 40 62 - 51 40"
