"""Notes to try."""

import numpy as np

from t2t_lite.media.midi_files import Note


def melody(seed, count=30, lowest=30, highest=100):
    """Notes at any times, some together; a pitch is struck again only after it has ended."""
    draw, now, notes, ends = np.random.default_rng(seed), 0.0, [], {}
    while len(notes) < count:
        now += float(draw.choice([0.0, 0.013, 0.2, 1.37]))
        pitch = int(draw.integers(lowest, highest + 1))
        if ends.get(pitch, -1) + 0.02 < now:
            ends[pitch] = now + float(draw.uniform(0.02, 2.5))
            notes.append(Note(now, ends[pitch], pitch, int(draw.integers(1, 128))))
    return notes
