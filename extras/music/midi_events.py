"""Reads and writes the notes and tempos of Standard MIDI Files (RP-001), and turns notes into sound.

Existing libraries are not used: mido drops the time before an unknown meta event and rejects some key signatures;
pretty-midi, which is based on mido, reads the tempo only from the first track.
"""

import bisect
import collections
import io
import wave
from typing import NamedTuple

import numpy as np

from t2t_lite import files
from t2t_lite.errors import LOGGER, UserError, counted, located

_DEFAULT_TEMPO = 500_000  # microseconds per quarter note
_RATES = {24: 24.0, 25: 25.0, 29: 30 / 1.001, 30: 30.0}  # SMPTE frames per second; 29 stands for "30 drop-frame"
_META, _END_OF_TRACK, _TEMPO = 0xFF, 0x2F, 0x51
_SYSTEM_EXCLUSIVE = (0xF0, 0xF7)
_NOTE_OFF, _NOTE_ON, _CONTROL = 0x8, 0x9, 0xB
_ONE_DATA_BYTE = (0xC, 0xD)  # program change, channel pressure; other events have two data bytes
_ALL_NOTES_OFF = (120, 123, 124, 125, 126, 127)  # controllers that end all notes on a channel
_DRUMS = 9  # General MIDI's percussion channel, counted from 0
_CHANNELS = [channel for channel in range(16) if channel != _DRUMS]
_RESOLUTION = 960  # ticks per quarter note in written files
_TICKS = 2 * _RESOLUTION  # ticks per second at 120 quarter notes per minute; one tick is about half a millisecond
_RATE = 22050  # samples of sound per second
_LOUDEST = 0.9 * 32767  # 90 % of the highest 16-bit sample
_FADE = 0.1  # seconds
_LONGEST = 24 * 3600  # maximum length of a piece in seconds; a longer file is considered damaged


class _NoteEvent(NamedTuple):
    """The start or the end of a note.

    Attributes:
        tick: int, ticks since the start of the piece.
        channel: int, counted from 0; drums are on channel 9.
        pitch: int; None ends all notes on the channel.
        velocity: int; 0 ends the note.
    """

    tick: int
    channel: int
    pitch: int | None
    velocity: int


def _read_events(data):
    """Parses the bytes of a MIDI file.

    Returns:
        list of lists of `_NoteEvent`, the tracks.
        int, the tick at which the longest track ends.
        function that converts a tick to seconds.

    Raises:
        UserError: the file is damaged or not a MIDI file. The message lacks the path.
    """
    if not data.startswith(b"MThd"):
        raise UserError(f"is {'not a MIDI file' if data else 'empty'}. Expected a Standard MIDI File.")
    kind, count, division = (int.from_bytes(data[at : at + 2]) for at in (8, 10, 12))
    if kind > 1:
        reason = "whose tracks are separate pieces" if kind == 2 else "which is unknown"
        raise UserError(f"has MIDI format {kind}, {reason}. Expected format 0 or 1.")
    tracks, at = [], 8 + max(6, int.from_bytes(data[4:8]))
    if at > len(data):
        raise UserError("truncated. Copy the file again.")
    while len(tracks) < count or data[at : at + 4] == b"MTrk":  # anything after the tracks is ignored
        start, at = at + 8, at + 8 + int.from_bytes(data[at + 4 : at + 8])
        if at > len(data):
            raise UserError("truncated. Copy the file again.")
        if data[start - 8 : start - 4] == b"MTrk":
            tracks.append(_read_track(_Bytes(data[start:at])))
    tempos = [change for _, changes, _ in tracks for change in changes]
    last_tick = max((last for _, _, last in tracks), default=0)
    return [notes for notes, _, _ in tracks], last_tick, _clock(division, tempos)


class _Bytes:
    """Reads the bytes of a track in order."""

    def __init__(self, content):
        self._content, self._at = content, 0

    def __bool__(self):
        return self._at < len(self._content)

    def take(self, count):
        self._at += count
        if self._at > len(self._content):
            raise UserError("damaged: a track ends within an event. Copy the file again.")
        return self._content[self._at - count : self._at]

    def byte(self):
        return self.take(1)[0]

    def number(self):
        """Reads a number of up to 4 bytes with 7 bits each; all but the last byte have the eighth bit set."""
        value = 0
        for _ in range(4):
            value = value << 7 | (byte := self.byte()) & 0x7F
            if byte < 0x80:
                return value
        raise UserError("damaged: a number has more than 4 bytes. Copy the file again.")


def _read_track(content):
    """Parses a track into ([_NoteEvent], [(tick, microseconds per quarter note)], last tick)."""
    notes, tempos, tick, status = [], [], 0, None
    while content:
        tick += content.number()
        first = content.byte()
        if first == _META:
            event_type, value = content.byte(), content.take(content.number())
            if event_type == _END_OF_TRACK:
                break
            if event_type == _TEMPO:
                tempos.append((tick, int.from_bytes(value)))
        elif first in _SYSTEM_EXCLUSIVE:
            content.take(content.number())
        else:
            # Without a status byte, the event has the status of the previous event ("running status").
            status, first = (first, content.byte()) if first & 0x80 else (status, first)
            if status is None or status >= 0xF0:
                raise UserError("damaged: an event has an unknown type. Copy the file again.")
            kind, channel = divmod(status, 16)
            second = 0 if kind in _ONE_DATA_BYTE else content.byte()
            if (first | second) & 0x80:
                raise UserError("damaged: an event has a value above 127. Copy the file again.")
            if kind in (_NOTE_OFF, _NOTE_ON):
                notes.append(_NoteEvent(tick, channel, first, second if kind == _NOTE_ON else 0))
            elif kind == _CONTROL and first in _ALL_NOTES_OFF:
                notes.append(_NoteEvent(tick, channel, None, 0))
    return notes, tempos, tick


def _clock(division, tempos):
    """Returns a function that converts ticks to seconds.

    Args:
        division: int from the file's header: ticks per quarter note, or frames per second and ticks per frame.
        tempos: list of (tick, microseconds per quarter note) from all tracks.
    """
    if division & 0x8000:
        frames, ticks = 256 - (division >> 8), division & 0xFF
        if frames not in _RATES or not ticks:
            raise UserError(
                f"its time unit is {ticks} ticks per frame at {frames} frames per second. Expected at least 1 tick, "
                "and SMPTE's 24, 25, 29 or 30 frames."
            )
        return lambda tick: tick / (_RATES[frames] * ticks)
    if not division:
        raise UserError("its time unit is 0 ticks per quarter note. Expected at least 1.")
    if any(tempo == 0 for _, tempo in tempos):
        raise UserError("has a tempo of 0 microseconds per quarter note. Expected at least 1.")
    ticks, seconds, rates = [0], [0.0], [_DEFAULT_TEMPO / 1e6 / division]
    for tick, tempo in sorted(tempos, key=lambda change: change[0]):
        seconds.append(seconds[-1] + (tick - ticks[-1]) * rates[-1])
        ticks.append(tick)
        rates.append(tempo / 1e6 / division)

    def seconds_at(tick):
        number = bisect.bisect_right(ticks, tick) - 1
        return seconds[number] + (tick - ticks[number]) * rates[number]

    return seconds_at


def _tracks_bytes(tracks):
    """Returns the bytes of a MIDI file in format 1; `tracks` is a list of sorted lists of (tick, bytes of an event)."""
    tempo = (0, bytes([_META, _TEMPO, 3]) + _DEFAULT_TEMPO.to_bytes(3))
    chunks = [_chunk(b"MTrk", _track_bytes(track)) for track in ([tempo], *tracks)]
    head = b"".join(number.to_bytes(2) for number in (1, len(chunks), _RESOLUTION))
    return b"".join((_chunk(b"MThd", head), *chunks))


def _chunk(name, content):
    return name + len(content).to_bytes(4) + content


def _track_bytes(events):
    parts, now = [], 0
    for tick, event in events:
        parts += [_number_bytes(tick - now), event]
        now = tick
    return b"".join((*parts, b"\0", bytes([_META, _END_OF_TRACK, 0])))


def _number_bytes(value):
    """Encodes a variable-length number: see `_Bytes.number`."""
    parts = [value & 0x7F]
    while value := value >> 7:
        parts.insert(0, value & 0x7F | 0x80)
    return bytes(parts)


class Note(NamedTuple):
    """A note of a piece.

    Attributes:
        start, end: float, seconds.
        pitch: int, as in MIDI: 60 is middle C.
        velocity: int, loudness from 1 to 127.
        track: int, number of the instrument or voice, counted from 0.
    """

    start: float
    end: float
    pitch: int
    velocity: int = 80
    track: int = 0


def read_midi(path, warn=LOGGER.warning):
    """Reads the notes of a MIDI file, except drums, into a list of `Note` objects sorted by start and pitch.

    Overlapping notes with the same pitch and channel end in the order in which they began. A note without an end event
    lasts until the end of the piece.

    Args:
        path: str.
        warn: function that is called with a message if notes have no end event.

    Raises:
        UserError: the file is missing, damaged or not a MIDI file, or the piece has no notes or is longer than a day.
    """
    data = files.read_bytes(path)
    with located(path):
        tracks, last_tick, seconds_at = _read_events(data)
    notes, unended = [], 0
    for number, track in enumerate(tracks):
        for channel, pitch, velocity, start, end in _spans(track):
            if channel != _DRUMS:
                unended += end is None
                seconds = (seconds_at(last_tick if tick is None else tick) for tick in (start, end))
                notes.append(Note(*seconds, pitch, velocity, channel if len(tracks) == 1 else number))
    if not notes:
        raise UserError(f"{path}: has no notes{' except drums' if any(tracks) else ''}. Remove the file.")
    if (seconds := seconds_at(last_tick)) > _LONGEST:
        raise UserError(f"{path}: lasts {seconds / 3600:,.0f} hours. Expected at most {_LONGEST // 3600} hours.")
    if unended:
        warn(f"{path}: held {counted(unended, 'note')} without an end event until the end of the piece.")
    numbers = {track: number for number, track in enumerate(sorted({note.track for note in notes}))}
    notes = [note._replace(track=numbers[note.track]) for note in notes]
    return sorted(notes, key=lambda note: (note.start, note.pitch))


def _spans(track):
    """Yields (channel, pitch, velocity, first tick, last tick) per note; the last tick is None if there is no end."""
    playing = collections.defaultdict(list)  # (channel, pitch) -> [(velocity, first tick)]
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
    """Returns the bytes of a MIDI file for piano; `Note.track` determines the track of each note.

    Overlapping notes with the same pitch go to different channels, because a channel, which all tracks share, can play
    a pitch only once at a time.
    """
    busy = collections.defaultdict(list)  # pitch -> (end, track) of the last note in each channel
    tracks = collections.defaultdict(list)  # (track, number of a group of 15 channels) -> [(tick, bytes)]
    for note in sorted(notes, key=lambda note: note.start):
        start = round(note.start * _TICKS)
        end = max(start + 1, round(note.end * _TICKS))
        last = busy[note.pitch]
        # At the same tick, the end of another track's note might be played after this note's start.
        is_free = [until < start or (until, track) == (start, note.track) for until, track in last]
        place = is_free.index(True) if any(is_free) else len(last)
        last[place : place + 1] = [(end, note.track)]
        part, number = divmod(place, len(_CHANNELS))
        on, off = (status << 4 | _CHANNELS[number] for status in (_NOTE_ON, _NOTE_OFF))
        tracks[note.track, part].append((start, bytes([on, note.pitch, note.velocity])))
        tracks[note.track, part].append((end, bytes([off, note.pitch, 0])))
    # At the same tick, sorting puts the end of a note (status 8) before the start of the next note (status 9).
    return _tracks_bytes([sorted(tracks[key]) for key in sorted(tracks)])


def wav_bytes(notes):
    """Synthesizes notes as sums of three sine waves; returns the bytes of a mono 16-bit WAV file."""
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
