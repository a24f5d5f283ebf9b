"""Notes to try, and MIDI files byte by byte."""

import numpy as np

from t2t_lite.extras.music.midi_events import Note


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


def midi(*tracks, division=480, kind=1, count=None):
    """Returns a MIDI file of tracks, each the bytes of its events, to which the end is added."""
    chunks = [track + b"\x00\xff\x2f\x00" for track in tracks]
    numbers = (kind, len(chunks) if count is None else count, division)
    head = b"MThd" + (6).to_bytes(4) + b"".join(number.to_bytes(2) for number in numbers)
    return head + b"".join(b"MTrk" + len(chunk).to_bytes(4) + chunk for chunk in chunks)
