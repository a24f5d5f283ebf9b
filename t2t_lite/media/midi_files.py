"""MIDI files <-> notes, and their sound, by pretty-midi (`pip install 't2t_lite[music]'`)."""

import io
import warnings
import wave
from typing import NamedTuple

import numpy as np

from t2t_lite import files
from t2t_lite.errors import UserError, first_line

_RESOLUTION = 960  # ticks per quarter: half a millisecond at the tempo below
_TEMPO = 120.0  # quarters per minute
_RATE = 22050  # samples of a sound per second
_LOUDEST = 0.9 * 32767  # of 16 bits


class Note(NamedTuple):
    """A note.

    Attributes:
        start, end: float, seconds.
        pitch: int, MIDI's, 60 is middle C.
        velocity: int, 1 to 127, how loud it is.
        track: int, from 0, the instrument or voice.
    """

    start: float
    end: float
    pitch: int
    velocity: int = 80
    track: int = 0


def import_pretty_midi():
    """Returns the module `pretty_midi`. Raises `UserError` if it is not installed."""
    try:
        import pretty_midi
    except ImportError:
        raise UserError("MIDI: pretty-midi is not installed. Run: pip install 't2t_lite[music]'") from None
    return pretty_midi


def read_midi(path):
    """Returns the notes of a MIDI file but for drums, a list of `Note` sorted by start and pitch.

    Raises:
        UserError: the file is missing, damaged, no MIDI, or has no notes.
    """
    pretty_midi = import_pretty_midi()
    data = files.read_bytes(path)
    if not data.startswith(b"MThd"):
        raise UserError(f"{path}: is {'no MIDI file' if data else 'empty'}. Expected a Standard MIDI File.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            midi = pretty_midi.PrettyMIDI(io.BytesIO(data))
    except ZeroDivisionError:
        raise UserError(f"{path}: has a tempo of 0. Expected microseconds per quarter note from 1.") from None
    except EOFError:
        raise UserError(f"{path}: cut off. Copy it again.") from None
    except Exception as error:  # what mido and pretty-midi raise about damaged files has no common class
        raise UserError(f"{path}: damaged ({first_line(error)}). Copy it again.") from None
    played = [instrument for instrument in midi.instruments if not instrument.is_drum]
    notes = [
        Note(note.start, note.end, note.pitch, note.velocity, track)
        for track, instrument in enumerate(played)
        for note in instrument.notes
    ]
    if not notes:
        raise UserError(f"{path}: has no notes{', drums apart' if midi.instruments else ''}. Leave it out.")
    return sorted(notes, key=lambda note: (note.start, note.pitch))


def midi_bytes(notes):
    """Returns notes as the bytes of a MIDI file, with an instrument, a piano, for each track."""
    content = io.BytesIO()
    _as_midi(notes).write(content)
    return content.getvalue()


def wav_bytes(notes):
    """Returns the sound of notes as the bytes of a WAV file, mono, 16 bits, made of a few sines for each note."""
    midi = _as_midi(notes)
    sound = midi.synthesize(_RATE, _tone, normalize=False) if notes else np.zeros(_RATE)
    loudest = max(np.abs(sound).max(initial=0.0), 1e-9)
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes((sound * (_LOUDEST / loudest)).astype("<i2").tobytes())
    return content.getvalue()


def _as_midi(notes):
    pretty_midi = import_pretty_midi()
    midi = pretty_midi.PrettyMIDI(resolution=_RESOLUTION, initial_tempo=_TEMPO)
    for track in sorted({note.track for note in notes}):
        midi.instruments.append(pretty_midi.Instrument(program=0))
        midi.instruments[-1].notes = [
            pretty_midi.Note(note.velocity, note.pitch, note.start, note.end) for note in notes if note.track == track
        ]
    return midi


def _tone(phase):
    return np.sin(phase) + 0.4 * np.sin(2 * phase) + 0.2 * np.sin(3 * phase)
