"""Notes as the bytes of files and as sound."""

import io
import re
import wave

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.music.midi_events import Note, midi_bytes, read_midi, wav_bytes
from tests.extras.music.music import melody, midi


def heard(notes):
    """Returns (samples from -1 to 1, samples per second)."""
    with wave.open(io.BytesIO(wav_bytes(notes))) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32767, file.getframerate()


@pytest.mark.parametrize("pitch, frequency", [(69, 440.0), (57, 220.0), (81, 880.0)])
def test_a_note_sounds_at_its_pitch_while_it_lasts(pitch, frequency):
    sound, rate = heard([Note(0.5, 1.5, pitch)])
    during = sound[int(0.5 * rate) : int(1.5 * rate)]
    spectrum = np.abs(np.fft.rfft(during))
    assert np.argmax(spectrum) * rate / len(during) == pytest.approx(frequency, abs=1.5)
    assert not sound[: int(0.5 * rate)].any() and not sound[int(1.5 * rate) :].any()
    assert np.abs(sound).max() == pytest.approx(0.9, abs=1e-3) and rate == 22050 and len(sound) == 2.5 * rate
    loud = [np.abs(during[int(at * rate) :][: rate // 100]).max() for at in (0.0, 0.5, 0.949, 0.99)]
    # it decays by 1 / e in a second, and fades over the last tenth
    np.testing.assert_allclose(np.divide(loud, loud[0]), [1, 0.607, 0.387 * 0.5, 0.372 * 0.1], atol=0.03)


def test_voices_sound_together_and_no_notes_are_silence():
    notes = [Note(0, 1, 69, track=0), Note(0, 1, 76, track=1)]
    sound, rate = heard(notes)
    spectrum = np.abs(np.fft.rfft(sound[:rate]))
    assert {*np.argsort(spectrum)[-2:].tolist()} == {440, 659}
    loud, soft = (
        np.abs(heard([Note(0, 1, 69, 127), Note(2, 3, 69, velocity)])[0][2 * rate :]).max() for velocity in (127, 32)
    )
    assert soft / loud == pytest.approx(32 / 127, abs=0.01)
    assert not heard([])[0].any() and len(heard([])[0]) == rate


def read(folder, data):
    """Returns the notes of a file's bytes."""
    (folder / "a.mid").write_bytes(data)
    return read_midi(str(folder / "a.mid"))


def tempo(ticks, bpm):
    """Returns the event of a tempo, after ticks below 16,384."""
    return bytes([0x80 | ticks >> 7, ticks & 127]) + b"\xff\x51\x03" + (60_000_000 // bpm).to_bytes(3)


def events(*names):
    """Returns the events of +60 (a note begins), -60 (it ends), and numbers of quarters, which are 480 ticks."""
    data, wait = b"", 0
    for name in names:
        if isinstance(name, int):
            wait = 480 * name
        else:
            status = 0x90 if name[0] == "+" else 0x80
            data += bytes([0x80 | wait >> 7, wait & 127, status, int(name[1:]), 64])
            wait = 0
    return data


def times(notes):
    return [(note.pitch, round(note.start, 6), round(note.end, 6)) for note in notes]


_NOTE = events("+60", 4, "-60", "+62", 4, "-62")  # 4 quarters each: 2 s at 120 per minute
_META = b"\x00\xff"


def test_a_tempo_in_any_track_holds_for_all(tmp_path):
    assert times(read(tmp_path, midi(b"", _NOTE))) == [(60, 0, 2), (62, 2, 4)], "120 quarters per minute"
    for tracks in ([_NOTE, tempo(0, 60)], [tempo(0, 60), _NOTE], [b"", tempo(0, 60), _NOTE]):
        assert times(read(tmp_path, midi(*tracks))) == [(60, 0, 4), (62, 4, 8)]
    changes = [tempo(1920, 60), tempo(0, 240), tempo(960, 30)]
    # 2 quarters of 0.25 s, 2 of 2 s, 4 of 1 s
    assert times(read(tmp_path, midi(*changes, _NOTE))) == [(60, 0, 4.5), (62, 4.5, 8.5)]
    assert times(read(tmp_path, midi(tempo(0, 60) + tempo(0, 240), _NOTE))) == [(60, 0, 1), (62, 1, 2)], "the last one"


@pytest.mark.parametrize("frames, rate", [(24, 24), (25, 25), (29, 30 / 1.001), (30, 30)])
def test_time_of_smpte_has_no_tempo(frames, rate, tmp_path):
    data = midi(tempo(0, 60), _NOTE, division=(256 - frames) << 8 | 40)
    assert times(read(tmp_path, data))[0] == (60, 0, round(1920 / (rate * 40), 6))


@pytest.mark.parametrize(
    "extra",
    {
        "nine flats": _META + b"\x59\x02\xf7\x00",
        "a mode that is none": _META + b"\x59\x02\x00\x07",
        "5 / 2**40": _META + b"\x58\x04\x05\x28\x18\x08",
        "a short time signature": _META + b"\x58\x01\x05",
        "frames that are none": _META + b"\x54\x05\xe0\x00\x00\x00\x00",
        "no event that is known": _META + b"\x60\x02ab",
        "system exclusive": b"\x00\xf0\x03ab\xf7\x00\xf7\x01a",
        "program, pedal, bend, pressure": b"\x00\xc0\x05\x00\xb0\x40\x7f\x00\xe0\x00\x40\x00\xd0\x10\x00\xa0\x3c\x01",
    }.items(),
    ids=lambda extra: extra[0],
)  # fmt: skip
def test_other_events_change_nothing(extra, tmp_path):
    assert times(read(tmp_path, midi(extra[1] + _NOTE))) == [(60, 0, 2), (62, 2, 4)]


def test_time_before_an_unknown_event_passes(tmp_path):
    assert times(read(tmp_path, midi(b"\x83\x60\xff\x60\x00" + _NOTE)))[0] == (60, 0.5, 2.5)


def test_notes_end_as_they_began(tmp_path):
    assert times(read(tmp_path, midi(events("+60", 2, "+60", 2, "-60", 2, "-60")))) == [(60, 0, 2), (60, 1, 3)]
    assert times(read(tmp_path, midi(events("+60", "-60", 2, "+62", 2, "-62")))) == [(60, 0, 0), (62, 1, 2)]
    assert times(read(tmp_path, midi(events("-60", "+60", 2, "-60", "-60")))) == [(60, 0, 1)], "an end too many"
    again = events("+60", 2, "+60", "-60", 2, "-60")
    assert times(read(tmp_path, midi(again))) == [(60, 0, 1), (60, 1, 2)], "at one tick"
    running = b"\x00\x90\x3c\x40\x83\x60\x3c\x00\x00\x3e\x40\x83\x60\x3e\x00"  # ends are starts of velocity 0
    assert times(read(tmp_path, midi(running))) == [(60, 0, 0.5), (62, 0.5, 1)]
    all_off = events("+60", "+62", 2) + b"\x83\x60\xb0\x7b\x00" + events("+64", 2, "-64")
    assert times(read(tmp_path, midi(all_off))) == [(60, 0, 0.5), (62, 0, 0.5), (64, 0.5, 1.5)]


@pytest.mark.parametrize("controller", range(119, 128))
def test_which_controllers_end_all_notes(controller, tmp_path):
    """MIDI 1.0, channel mode messages: all sound off (120), all notes off (123), and modes that imply it (124-127)."""
    ends = controller in (120, 123, 124, 125, 126, 127)  # 121 resets controllers, 122 is local control
    data = events("+60", 2) + bytes([0x83, 0x60, 0xB0, controller, 0]) + events(2, "-60")
    assert times(read(tmp_path, midi(data))) == [(60, 0, 0.5 if ends else 1.5)]


def test_notes_without_an_end_last_until_that_of_the_piece(tmp_path, caplog):
    assert times(read(tmp_path, midi(events("+60", 2, "+62", 2, "-62"), _NOTE))) == [
        (60, 0, 4), (60, 0, 2), (62, 1, 2), (62, 2, 4)
    ]  # fmt: skip
    (told,) = caplog.messages
    assert told.startswith(f"{tmp_path}/a.mid: held 1 note without an end event")


def test_tracks_are_instruments_and_of_a_single_track_channels(tmp_path):
    drums = b"\x00\x99\x24\x40\x10\x89\x24\x40"
    on, off = (bytes([0, status, pitch, 64]) for status, pitch in ((0x92, 70), (0x82, 70)))
    tracks = [b"", events("+60"), drums, on + events(2, "+61"), b""]
    assert [(n.pitch, n.track) for n in read(tmp_path, midi(*tracks))] == [(60, 0), (70, 1), (61, 1)]
    one = on + events("+60") + drums + off + events("-60")
    for kind in (0, 1):
        assert [(n.pitch, n.track) for n in read(tmp_path, midi(one, kind=kind))] == [(60, 0), (70, 1)]


def test_chunks_that_are_no_tracks_are_skipped(tmp_path):
    expected = times(read(tmp_path, midi(_NOTE)))
    head, track = midi(_NOTE)[:14], midi(_NOTE)[14:]
    for data in (head + b"XFIH\0\0\0\2ab" + track, head + track + b"garbage", head + track + b"\0" * 40):
        assert times(read(tmp_path, data)) == expected
    longer = b"MThd\0\0\0\x08" + head[8:] + b"ab" + track
    assert times(read(tmp_path, longer)) == times(read(tmp_path, midi(_NOTE, count=0))) == expected
    after_end = midi(_NOTE + b"\x00\xff\x2f\x00" + events("+70"))
    assert times(read(tmp_path, after_end)) == expected


ON, OFF, DRUM = b"\x00\x90\x3c\x40", b"\x60\x80\x3c\x40", b"\x00\x99\x3c\x40\x60\x89\x3c\x40"
BAD = {
    "empty": (b"", "is empty"), "text": (b"notes", "not a MIDI file"), "head alone": (b"MThd", "truncated"),
    "cut off": (midi(ON + OFF)[:-6], "truncated"), "fewer tracks": (midi(_NOTE, count=2), "truncated"),
    "pieces": (midi(_NOTE, kind=2), "format 2, whose.*0 or 1"), "format 7": (midi(_NOTE, kind=7), "format 7, which"),
    "23 frames": (midi(_NOTE, division=(256 - 23) << 8 | 40), "40 ticks.*23 frames.*24, 25, 29 or 30"),
    "no ticks of frames": (midi(_NOTE, division=(256 - 25) << 8), "0 ticks.*25 frames"),
    "no ticks": (midi(_NOTE, division=0), "0 ticks per quarter"),
    "no tempo": (midi(b"\x00\xff\x51\x03\x00\x00\x00" + ON + OFF), "tempo of 0"),
    "no status": (midi(b"\x00\x3c\x40"), "damaged.*unknown"), "another status": (midi(b"\x00\xf4"), "damaged.*unknown"),
    "a high value": (midi(b"\x00\x90\x3c\xf0"), "damaged.*above 127"),
    "a short event": (midi(b"\x00\xff\x51\x7f"), "damaged.*track ends"),
    "a long number": (midi(b"\xff" * 999), "damaged.*4 bytes"),
    "a day": (midi(_NOTE, b"\xff\xff\xff\x7f\xc0\x01", division=1), r"37,283 hours.*24\b"),
    "no notes": (midi(b""), r"has no notes\."), "drums": (midi(DRUM), "has no notes except drums"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_music_is_named(kind, tmp_path):
    data, message = BAD[kind]
    with pytest.raises(UserError, match=rf"a\.mid: .*{message}"):
        read(tmp_path, data)


def test_the_bytes_of_a_file():
    """As RP-001 has them, by hand: 960 ticks per quarter of 0x07a120 microseconds; 480 ticks are 0x83 0x60."""
    one, two = Note(0.25, 0.5, 60, 70, 3), Note(0.5, 0.75, 60, 71, 3)  # one after the other: in one channel
    track = b"\x83\x60\x90\x3c\x46\x83\x60\x80\x3c\x00\x00\x90\x3c\x47\x83\x60\x80\x3c\x00\x00\xff\x2f\x00"
    expected = b"MThd\0\0\0\6\0\1\0\2\3\xc0" + b"MTrk\0\0\0\x0b\0\xff\x51\3\x07\xa1\x20\0\xff\x2f\0"
    assert midi_bytes([two, one]) == expected + b"MTrk" + len(track).to_bytes(4) + track
    short = midi_bytes([Note(0, 0, 60)])[-12:]
    assert short == b"\0\x90\x3c\x50\1\x80\x3c\0\0\xff\x2f\0", "a note lasts a tick at least"
    above = midi_bytes([one._replace(track=1), one._replace(pitch=62, track=0)])
    assert above.index(b"\x90\x3e") < above.index(b"\x90\x3c"), "tracks are in order"


@pytest.mark.parametrize(
    ("first", "second", "channels"),
    [
        (Note(0, 1, 60), Note(0.5, 2, 60, track=1), {0, 1}), (Note(0, 1, 60), Note(1, 2, 60, track=1), {0, 1}),
        (Note(0, 1, 60), Note(1.5, 2, 60, track=1), {0}), (Note(0, 1, 60), Note(0, 1, 62, track=1), {0}),
    ],
)  # fmt: skip
def test_voices_do_not_end_each_others_notes(first, second, channels):
    """All tracks share 16 channels, and the order of two tracks' events at one tick is not defined."""
    data = midi_bytes([first, second])
    starts = [
        re.search(rb"[\x90-\x9f]" + bytes([note.pitch]), track)
        for note, track in zip((first, second), data.split(b"MTrk")[2:], strict=True)
    ]
    assert {start[0][0] & 15 for start in starts} == channels


def test_notes_come_back_from_files(tmp_path):
    overlapping = [Note(0, 3, 60, 50), Note(1, 2, 60, 60), Note(1, 6, 60, 70), Note(2, 4, 60, 80), Note(2.5, 5, 60, 90)]
    voices = [note._replace(track=track) for track in range(3) for note in overlapping]
    for notes in (overlapping, voices, [Note(0.5 * n, 100 - n, 60, 1 + n) for n in range(14)]):
        assert sorted(read(tmp_path, midi_bytes(notes))) == sorted(notes)
    many = [Note(0.5 * n, 100 - n, 60, 1 + n) for n in range(40)]
    found = [note._replace(track=0) for note in read(tmp_path, midi_bytes(many))]
    assert sorted(found) == sorted(many), "more than there are channels"
    notes = sorted(melody(3))
    for note, expected in zip(sorted(read(tmp_path, midi_bytes(notes))), notes, strict=True):
        np.testing.assert_allclose(note, expected, atol=1 / 3840 + 1e-9)
