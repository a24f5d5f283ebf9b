"""Performances as magenta's events, through MIDI files and back; pieces in four voices."""

import itertools

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.extras.music.midi_events import Note, midi_bytes, read_midi
from t2t_lite.extras.music.performance_encoder import ChoraleEncoder, PerformanceEncoder
from tests.extras.music.music import melody

ENCODER, CHORALES = PerformanceEncoder(), ChoraleEncoder()


def test_there_are_magentas_310_events():
    ids = ENCODER.encode_notes([Note(1.5, 1.5, 60, 80)])
    assert ENCODER.pieces(ids) == ["shift100", "shift50", "velocity20", "on60", "shift1", "off60"]
    # magenta: on, off, shifts, velocities, behind two reserved ids
    assert ids == [2 + 176 + 99, 2 + 176 + 49, 2 + 276 + 19, 2 + 60 - 21, 2 + 176, 2 + 88 + 60 - 21]
    assert ENCODER.vocab_size == 310 and ENCODER.encode(ENCODER.decode(ids)) == ids
    assert ENCODER.tf_encode(tf.constant(["on60 x shift1"])).to_list() == [[41, 178]]
    assert ENCODER.tf_decode(tf.ragged.constant([[0, 2, 41, 1, 9]])).numpy() == [b"on21 on60"]
    assert ENCODER.pitches == [(2, 88), (90, 88)] and CHORALES.pitches == [(3, 88)]
    with pytest.raises(UserError, match=r"'on20'.* on21 to velocity32"):
        ENCODER.encode("on20")
    assert ENCODER.fingerprint != CHORALES.fingerprint == ChoraleEncoder().fingerprint


@pytest.mark.parametrize(
    ("names", "notes"),
    [
        ("shift100 shift50 velocity20 on60 shift1 off60", [Note(1.5, 1.51, 60, 77)]),
        ("off60 on60 shift5 on62", [Note(0, 0.05, 60), Note(0.05, 0.06, 62)]),
        ("on60 shift5 on60 shift5 off60 shift5 off60", [Note(0, 0.1, 60), Note(0.05, 0.15, 60)]),  # first in, first out
        ("on21 shift1 off21", [Note(0, 0.01, 21)]),
        ("on60 shift1 on62 shift1 off62 shift1 off60", [Note(0, 0.03, 60), Note(0.01, 0.02, 62)]),
        ("velocity1 on21 velocity32 on108 shift100", [Note(0, 1, 21, 1), Note(0, 1, 108, 125)]),
        ("on60 shift5 velocity20 velocity20 velocity20 off60", [Note(0, 0.05, 60)]),  # the last there is
        ("on60 shift2 on60 velocity20 shift3 off60", [Note(0, 0.05, 60), Note(0.02, 0.05, 60)]),  # none is repeated
    ],
)
def test_notes_of_any_events(names, notes):
    ids = ENCODER.encode(names)
    assert ENCODER.decode_notes(ids) == notes and ENCODER.count_notes(ids) == names.count("on")


@pytest.mark.parametrize(
    ("notes", "names"),
    [
        # a velocity is of bins of 4, and told when it changes; times are rounded to 10 ms
        ([Note(0.004, 0.016, 60, 4), Note(0.02, 0.03, 62, 1), Note(0.02, 0.03, 64, 5)],
         "velocity1 on60 shift2 off60 on62 velocity2 on64 shift1 off62 off64"),
        # one that ends before an earlier one is told by repeated velocities
        ([Note(0, 3, 60, 77), Note(1, 2, 60, 77)],
         "velocity20 on60 shift100 on60 shift100 velocity20 off60 shift100 off60"),
        ([Note(600, 600.01, 60, 80)], " ".join(["shift100"] * 600) + " velocity20 on60 shift1 off60"),
    ],
)  # fmt: skip
def test_events_of_notes(notes, names):
    assert ENCODER.decode(ENCODER.encode_notes(notes)) == names


@pytest.mark.parametrize(
    ("note", "message"),
    [(Note(1.25, 2, 20), r"pitch 20 at 1\.25 s.* 21 to 108"), (Note(0, 2, 109), "pitch 109"),
     (Note(605, 606, 60), "601 s.* 600 s")],
)  # fmt: skip
def test_notes_that_no_piano_has(note, message):
    with pytest.raises(UserError, match=message):
        ENCODER.encode_notes([Note(0, 3.7, 60), note])


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
    assert sorted(ENCODER.decode_notes(ENCODER.encode_notes(read_midi(str(path))))) == sorted(notes)


def test_held_notes_are_one_and_voices_are_tracks():
    notes = CHORALES.decode_notes(CHORALES.encode("60 - 50 40 60 - 51 40 62 - 51 40"))
    assert notes == [
        Note(0, 0.25, 60), Note(0, 0.125, 50, track=2), Note(0, 0.375, 40, track=3), Note(0.125, 0.375, 51, track=2),
        Note(0.25, 0.375, 62),
    ]  # fmt: skip
    assert CHORALES.decode(CHORALES.encode_notes([note._replace(track=9) for note in notes])) == (
        "60 50 40 - 60 51 40 - 62 51 40 -"
    ), "of one track, voices are told by their pitches"
    four = [*notes, Note(0, 0.125, 41, track=1)]
    assert CHORALES.decode(CHORALES.encode_notes(four)) == "60 41 50 40 60 - 51 40 62 - 51 40"
    assert CHORALES.vocab_size == 91 and CHORALES.count_notes(CHORALES.encode("60 - 50 40")) == 4


@pytest.mark.parametrize(
    ("notes", "names"),
    [
        # players are not exact: what sounds in the middle of a step, from 62.5 ms, is its note
        ([Note(0.03, 0.12, 60), Note(0.13, 0.26, 62)], "60 - - - 62 - - -"),
        ([Note(0.0625, 0.19, 60)], "60 - - - 60 - - -"),
        ([Note(0.07, 0.18, 60)], "- - - -"),
        ([Note(0, 0.0625, 60)], "- - - -"),
        ([Note(0, 0.1, 60 + n) for n in range(6)], "65 64 63 62"),  # the four highest
        ([], ""),
    ],
)
def test_a_step_is_what_sounds_in_its_middle(notes, names):
    assert CHORALES.decode(CHORALES.encode_notes(notes)) == names
