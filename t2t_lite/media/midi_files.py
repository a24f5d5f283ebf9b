"""MIDI files <-> notes, by pretty-midi (`pip install 't2t_lite[music]'`)."""

import io
import warnings
from typing import NamedTuple

from t2t_lite import files
from t2t_lite.errors import UserError, first_line

_RESOLUTION = 960  # ticks per quarter: half a millisecond at the tempo below
_TEMPO = 120.0  # quarters per minute


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
    pretty_midi = import_pretty_midi()
    midi = pretty_midi.PrettyMIDI(resolution=_RESOLUTION, initial_tempo=_TEMPO)
    for track in sorted({note.track for note in notes}):
        midi.instruments.append(pretty_midi.Instrument(program=0))
        midi.instruments[-1].notes = [
            pretty_midi.Note(note.velocity, note.pitch, note.start, note.end) for note in notes if note.track == track
        ]
    content = io.BytesIO()
    midi.write(content)
    return content.getvalue()
