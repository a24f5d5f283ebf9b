"""Performances as magenta's events, and through MIDI files and back."""

import itertools

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.extras.music.midi_events import Note, midi_bytes, read_midi
from t2t_lite.extras.music.performance_encoder import PerformanceEncoder
from tests.extras.music.music import melody

ENCODER = PerformanceEncoder()


def test_there_are_magentas_310_events():
    note = [Note(1.5, 1.5, 60, 80)]
    ids = ENCODER.encode_notes(note)
    assert ENCODER.pieces(ids) == ["shift100", "shift50", "velocity20", "on60", "shift1", "off60"]
    # magenta: on, off, shifts, velocities, behind two reserved ids
    assert ids == [2 + 176 + 99, 2 + 176 + 49, 2 + 276 + 19, 2 + 60 - 21, 2 + 176, 2 + 88 + 60 - 21]
    assert ENCODER.vocab_size == 310 and ENCODER.encode(ENCODER.decode(ids)) == ids
    assert ENCODER.tf_encode(tf.constant(["on60 x shift1"])).to_list() == [[41, 178]]
    assert ENCODER.tf_decode(tf.ragged.constant([[0, 2, 41, 1, 9]])).numpy() == [b"on21 on60"]
    assert ENCODER.decode_notes(ids) == [Note(1.5, 1.51, 60, 77)]
    assert ENCODER.decode_notes([*ENCODER.encode("off60 on60 shift5 on62")]) == [
        Note(0, 0.05, 60),
        Note(0.05, 0.06, 62),
    ]
    twice = ENCODER.encode("on60 shift5 on60 shift5 off60 shift5 off60")
    assert ENCODER.decode_notes(twice) == [Note(0, 0.1, 60), Note(0.05, 0.15, 60)], "what began first ends first"
    with pytest.raises(UserError, match=r"'on20' is no event of this music\. Expected names from on21 to velocity32"):
        ENCODER.encode("on20")


@pytest.mark.parametrize("seed", range(4))
def test_notes_are_kept_within_10_ms_through_midi_events_and_midi(seed, tmp_path):
    notes = melody(seed, count=200)
    path = tmp_path / "a.mid"
    path.write_bytes(midi_bytes(notes))
    path.write_bytes(midi_bytes(ENCODER.decode_notes(ENCODER.encode_notes(read_midi(str(path))))))
    found = sorted(read_midi(str(path)), key=lambda note: (note.pitch, note.start))
    assert len(found) == len(notes)
    for note, expected in zip(found, sorted(notes, key=lambda note: (note.pitch, note.start)), strict=True):
        assert note.pitch == expected.pitch and abs(note.velocity - expected.velocity) < 4
        assert abs(note.start - expected.start) < 0.01 and abs(note.end - expected.end) < 0.01


@pytest.mark.parametrize("ends", [*itertools.permutations((3.0, 4.0, 5.0))])
@pytest.mark.parametrize("starts", [(0.0, 1.0, 2.0), (0.0, 0.0, 2.0), (1.0, 1.0, 1.0)])
def test_notes_of_one_pitch_that_overlap_keep_their_own_lengths(starts, ends, tmp_path):
    notes = [Note(*times, 60, velocity) for *times, velocity in zip(starts, ends, (41, 81, 81), strict=True)]
    assert sorted(ENCODER.decode_notes(ENCODER.encode_notes(notes))) == sorted(notes)
    path = tmp_path / "a.mid"
    path.write_bytes(midi_bytes(notes))
    assert sorted(read_midi(str(path))) == sorted(notes)
    played = ENCODER.encode_notes(read_midi(str(path)))
    assert sorted(ENCODER.decode_notes(played)) == sorted(notes)


def test_a_note_that_ends_before_an_earlier_one_is_told_by_repeated_velocities():
    inner = [Note(0, 3, 60, 77), Note(1, 2, 60, 77)]
    names = ["velocity20", "on60", "shift100", "on60", "shift100", "velocity20", "off60", "shift100", "off60"]
    assert ENCODER.pieces(ENCODER.encode_notes(inner)) == names
    more = ENCODER.encode("on60 shift5 velocity20 velocity20 velocity20 off60")
    assert ENCODER.decode_notes(more) == [Note(0, 0.05, 60)], "of more than there are, the last one ends"
