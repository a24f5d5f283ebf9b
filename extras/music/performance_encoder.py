"""Performances as events, magenta's `MidiPerformanceEncoder` (Oore et al. 2018, "This time with feeling")."""

import collections

from t2t_lite.errors import UserError
from t2t_lite.extras.music.event_encoder import HIGHEST, LOWEST, PITCHES, EventEncoder
from t2t_lite.extras.music.midi_files import Note

_STEPS = 100  # per second
_MOST_STEPS = 100  # of one shift
_BINS, _BIN = 32, 4  # velocities 1-4, 5-8, …
_LONGEST_PAUSE = 600  # seconds; a longer one is a damaged file


class PerformanceEncoder(EventEncoder):
    """310 ids: padding, end, 88 notes on, 88 off, 100 shifts of 10 ms each, 32 velocities.

    Notes are of a piano's 88 pitches; instruments are played together. Times are rounded to 10 ms, velocities to 4.
    The sustain pedal is not read. Of notes of one pitch, the first one ends first; if another one does, its `off` comes
    after repeated velocities, one for each note that began earlier and still sounds.
    """

    def __init__(self):
        names = [f"{what}{pitch}" for what in ("on", "off") for pitch in PITCHES]
        names += [f"shift{steps}" for steps in range(1, _MOST_STEPS + 1)]
        names += [f"velocity{number}" for number in range(1, _BINS + 1)]
        self._on = self.num_reserved_ids
        self._off = self._on + len(PITCHES)
        self._shift = self._off + len(PITCHES)
        self._velocity = self._shift + _MOST_STEPS
        super().__init__(names, [(self._on, len(PITCHES)), (self._off, len(PITCHES))])

    def encode_notes(self, notes):
        """See `EventEncoder`."""
        events = []
        for number, note in enumerate(notes):
            if note.pitch not in PITCHES:
                raise UserError(
                    f"a note of pitch {note.pitch} at {note.start:.2f} s. Expected {LOWEST} to {HIGHEST}, those of a "
                    "piano."
                )
            start = int(note.start * _STEPS + 0.5)
            events += [(start, number, False), (max(start + 1, int(note.end * _STEPS + 0.5)), number, True)]
        ids, now, velocity, playing = [], 0, None, collections.defaultdict(list)
        for step, number, is_end in sorted(events):
            if step - now > _LONGEST_PAUSE * _STEPS:
                seconds = (step - now) / _STEPS
                raise UserError(f"{seconds:,.0f} s without an event. Expected pauses of at most {_LONGEST_PAUSE} s.")
            while now < step:
                shift = min(step - now, _MOST_STEPS)
                ids.append(self._shift + shift - 1)
                now += shift
            note = notes[number]
            if is_end:
                place = playing[note.pitch].index(number)
                ids += [self._velocity + velocity] * place
                del playing[note.pitch][place]
            else:
                if (note.velocity - 1) // _BIN != velocity:
                    velocity = (note.velocity - 1) // _BIN
                    ids.append(self._velocity + velocity)
                playing[note.pitch].append(number)
            ids.append((self._off if is_end else self._on) + note.pitch - LOWEST)
        return ids

    def decode_notes(self, ids):
        """See `EventEncoder`; a note that does not end lasts until the end of all."""
        step, velocity, velocities, playing, notes = 0, 80, 0, collections.defaultdict(list), []

        def end(pitch, place=0):
            start, loud = playing[pitch].pop(place)
            notes.append(Note(start / _STEPS, max(step, start + 1) / _STEPS, pitch, loud))

        for i in ids:
            if i >= self._velocity:
                velocity = 1 + (i - self._velocity) * _BIN
                velocities += 1
                continue
            if i >= self._shift:
                step += i - self._shift + 1
            elif i >= self._off:
                pitch = i - self._off + LOWEST
                if playing[pitch]:
                    end(pitch, min(velocities, len(playing[pitch]) - 1))
            elif i >= self._on:
                playing[i - self._on + LOWEST].append((step, velocity))
            velocities = 0
        for pitch, started in playing.items():
            while started:
                end(pitch)
        return sorted(notes, key=lambda note: (note.start, note.pitch))

    def count_notes(self, ids):
        """See `EventEncoder`."""
        return sum(self._on <= i < self._off for i in ids)
