"""Pieces in four voices, a pitch for each voice and 16th note."""

import itertools

from t2t_lite.errors import UserError
from t2t_lite.extras.music.event_encoder import HIGHEST, LOWEST, PITCHES, EventEncoder
from t2t_lite.extras.music.midi_files import Note

VOICES = 4
SILENCE = -1
_SECONDS = 0.125  # of a 16th note, at 120 quarters per minute


class ChoraleEncoder(EventEncoder):
    """91 ids: padding, end, silence, a piano's 88 pitches.

    Of each step of a 16th note there are the ids of soprano, alto, tenor and bass. A held and a repeated note look the
    same.
    """

    def __init__(self):
        self._silence = self.num_reserved_ids
        self._lowest = self._silence + 1
        super().__init__(["-", *map(str, PITCHES)], [(self._lowest, len(PITCHES))])

    def encode_steps(self, steps):
        """Returns the ids of steps, each a list of four pitches, from the highest voice on; -1 is silence.

        Raises:
            UserError: a pitch is outside of a piano's.
        """
        pitches = [*itertools.chain.from_iterable(steps)]
        if wrong := [pitch for pitch in pitches if pitch != SILENCE and pitch not in PITCHES]:
            raise UserError(f"a note of pitch {wrong[0]}. Expected {LOWEST} to {HIGHEST}, or {SILENCE} for silence.")
        return [self._silence if pitch == SILENCE else self._lowest + pitch - LOWEST for pitch in pitches]

    def encode_notes(self, notes):
        """See `EventEncoder`: four tracks are the voices, from the highest on; else they are told by their pitches."""
        tracks = sorted({note.track for note in notes})
        last = max((note.end for note in notes), default=0.0)
        steps = []
        for number in range(int(last / _SECONDS + 0.5)):
            now = (number + 0.5) * _SECONDS
            playing = [note for note in notes if note.start <= now < note.end]
            if len(tracks) == VOICES:
                of_track = {note.track: note.pitch for note in playing}
                steps.append([of_track.get(track, SILENCE) for track in tracks])
            else:
                pitches = sorted({note.pitch for note in playing}, reverse=True)[:VOICES]
                steps.append(pitches + [SILENCE] * (VOICES - len(pitches)))
        return self.encode_steps(steps)

    def decode_notes(self, ids):
        """See `EventEncoder`; a track for each voice."""
        notes = []
        for voice in range(VOICES):
            start = 0
            for i, group in itertools.groupby(ids[voice::VOICES]):
                end = start + len([*group])
                if i >= self._lowest:
                    pitch = i - self._lowest + LOWEST
                    notes.append(Note(start * _SECONDS, end * _SECONDS, pitch, track=voice))
                start = end
        return sorted(notes, key=lambda note: (note.start, note.track))

    def count_notes(self, ids):
        """Returns the number of ids: each step of each voice counts, silent ones, too."""
        return len(ids)
