"""MIDI files <-> notes, and their sound."""

import collections
import io
import logging
import wave
from typing import NamedTuple

import numpy as np

from t2t_lite import files
from t2t_lite.errors import UserError, counted, located
from t2t_lite.extras.music.midi_events import NOTE_OFF, NOTE_ON, read_events, tracks_bytes

_LOGGER = logging.getLogger("t2t_lite")
_DRUMS = 9  # the channel
_CHANNELS = [channel for channel in range(16) if channel != _DRUMS]
_RESOLUTION = 960  # ticks per quarter, of which there are two per second without a tempo: half a millisecond each
_TICKS = 2 * _RESOLUTION
_RATE = 22050  # samples of a sound per second
_LOUDEST = 0.9 * 32767  # of 16 bits
_FADE = 0.1  # seconds
_LONGEST = 24 * 3600  # seconds of a piece; a longer one is a damaged file


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


def read_midi(path, warn=_LOGGER.warning):
    """Returns the notes of a MIDI file but for drums, a list of `Note` sorted by start and pitch.

    Notes of one pitch that overlap in one channel end in the order in which they began. A note without an end lasts
    until the end of the piece.

    Args:
        path: str.
        warn: function of a message, called if notes have no end.

    Raises:
        UserError: the file is missing, damaged, no MIDI, has no notes, or lasts more than a day.
    """
    data = files.read_bytes(path)
    with located(path):
        events = read_events(data)
    notes, unended = [], 0
    for number, track in enumerate(events.tracks):
        for channel, pitch, velocity, start, end in _spans(track):
            if channel != _DRUMS:
                unended += end is None
                seconds = (events.seconds(events.last_tick if tick is None else tick) for tick in (start, end))
                notes.append(Note(*seconds, pitch, velocity, channel if events.has_one_track else number))
    if not notes:
        raise UserError(f"{path}: has no notes{', drums apart' if any(events.tracks) else ''}. Leave it out.")
    if (seconds := events.seconds(events.last_tick)) > _LONGEST:
        raise UserError(f"{path}: lasts {seconds / 3600:,.0f} hours. Expected at most {_LONGEST // 3600}.")
    if unended:
        warn(f"{path}: {counted(unended, 'note')} without an end, held until that of the piece.")
    numbers = {track: number for number, track in enumerate(sorted({note.track for note in notes}))}
    notes = [note._replace(track=numbers[note.track]) for note in notes]
    return sorted(notes, key=lambda note: (note.start, note.pitch))


def _spans(track):
    """Yields (channel, pitch, velocity, first tick, last tick) of a track's notes; the last is None without an end."""
    playing = collections.defaultdict(list)  # (channel, pitch) -> [(velocity, first tick)] of notes
    for tick, channel, pitch, velocity in track:
        if velocity:
            playing[channel, pitch].append((velocity, tick))
        elif pitch is None:
            for key in [key for key in playing if key[0] == channel]:
                yield from ((*key, *started, tick) for started in playing.pop(key))
        elif playing[channel, pitch]:
            yield channel, pitch, *playing[channel, pitch].pop(0), tick
    for key, notes in playing.items():
        yield from ((*key, *started, None) for started in notes)


def midi_bytes(notes):
    """Returns notes as the bytes of a MIDI file, for a piano, with a track for each of theirs.

    A channel holds one note of a pitch at a time, so notes of one pitch that overlap are in several channels.
    """
    busy = collections.defaultdict(list)  # (track, pitch) -> the end of the last note in each channel
    tracks = collections.defaultdict(list)  # (track, its part with 15 channels) -> [(tick, bytes)]
    for note in sorted(notes, key=lambda note: note.start):
        start = round(note.start * _TICKS)
        end = max(start + 1, round(note.end * _TICKS))
        ends = busy[note.track, note.pitch]
        place = next((number for number, until in enumerate(ends) if until <= start), len(ends))
        ends[place : place + 1] = [end]
        part, number = divmod(place, len(_CHANNELS))
        on, off = (status << 4 | _CHANNELS[number] for status in (NOTE_ON, NOTE_OFF))
        tracks[note.track, part].append((start, bytes([on, note.pitch, note.velocity])))
        tracks[note.track, part].append((end, bytes([off, note.pitch, 0])))
    # At a tick, a note ends before the next one of its pitch begins: 8 is below 9.
    return tracks_bytes([sorted(tracks[key]) for key in sorted(tracks)], _RESOLUTION)


def wav_bytes(notes):
    """Returns the sound of notes as the bytes of a WAV file, mono, 16 bits, made of a few sines for each note."""
    sound = np.zeros(int(_RATE * (1 + max((note.end for note in notes), default=0.0))))
    for note in notes:
        start, end = int(_RATE * note.start), int(_RATE * note.end)
        times = np.arange(end - start) / _RATE
        envelope = note.velocity * np.exp(-times) * np.minimum(1, times[::-1] / min(_FADE, note.end - note.start))
        sound[start:end] += envelope * _tone(2 * np.pi * 440 * 2 ** ((note.pitch - 69) / 12) * times)
    loudest = max(np.abs(sound).max(), 1e-9)
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE)
        file.writeframes((sound * (_LOUDEST / loudest)).astype("<i2").tobytes())
    return content.getvalue()


def _tone(phase):
    return np.sin(phase) + 0.4 * np.sin(2 * phase) + 0.2 * np.sin(3 * phase)
