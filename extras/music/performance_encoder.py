"""Event encoders for music: magenta's `MidiPerformanceEncoder` (Oore et al. 2018), and one for four-voice pieces."""

import collections
import hashlib
import itertools

from t2t_lite.errors import UserError, shown
from t2t_lite.extras.music.midi_events import Note
from t2t_lite.text.vocabulary import TextEncoder

LOWEST, HIGHEST = 21, 108  # the pitches of a piano, A0 to C8
PITCHES = range(LOWEST, HIGHEST + 1)
_STEPS = 100  # time steps per second
_MOST_STEPS = 100  # the largest number of steps per shift event
_BINS, _BIN = 32, 4  # number and size of the velocity bins: 1-4, 5-8, …
_LONGEST_PAUSE = 600  # maximum length of a pause in seconds; a file with a longer pause is considered damaged
VOICES = 4
SILENCE = -1
_SECONDS = 0.125  # length of a 16th note at 120 quarter notes per minute


class EventEncoder(TextEncoder):
    """Maps named events to ids, starting at 2. In a text, the events' names stand for the ids, separated by spaces.

    Subclasses also convert between lists of `Note` and ids, with `encode_notes` and `decode_notes`.

    Args:
        names: list of str, without white space.
        pitches: list of (id of the lowest pitch, number of pitches), one for each range of ids that stand for pitches.
            Transposition shifts these ids.
    """

    def __init__(self, names, pitches):
        super().__init__(self.num_reserved_ids + len(names))
        self.pitches = pitches
        self._names = names
        self._ids = {name: i for i, name in enumerate(names, self.num_reserved_ids)}

    @property
    def fingerprint(self):
        """The SHA-256 of the event names, in hex."""
        return hashlib.sha256(" ".join(self._names).encode()).hexdigest()

    def encode(self, text):
        """Encodes event names separated by white space. Raises `UserError` for unknown names."""
        if unknown := [name for name in text.split() if name not in self._ids]:
            first, last = self._names[0], self._names[-1]
            raise UserError(f"{shown(unknown[0])} is not the name of an event. Expected names from {first} to {last}.")
        return [self._ids[name] for name in text.split()]

    def encode_notes(self, notes):
        """Encodes a list of `Note` sorted by start as ids. Raises `UserError` if a note cannot be encoded."""
        raise NotImplementedError

    def decode_notes(self, ids):
        """Decodes any sequence of ids to a list of `Note`."""
        raise NotImplementedError

    def count_notes(self, ids):
        """Returns the number of notes in a sequence of ids."""
        raise NotImplementedError

    def _piece(self, i):
        return self._names[i - self.num_reserved_ids]

    def tf_encode(self, strings):
        """Encodes in a graph: string [batch] -> int32 ragged [batch, (length)], without EOS; skips unknown names."""
        import tensorflow as tf

        words = tf.strings.split(strings)
        same = words.flat_values[:, None] == tf.constant(self._names)[None]
        ids = tf.argmax(tf.cast(same, tf.int32), axis=1, output_type=tf.int32) + self.num_reserved_ids
        return tf.ragged.boolean_mask(words.with_flat_values(ids), words.with_flat_values(tf.reduce_any(same, axis=1)))

    def tf_decode(self, ids):
        """Decodes in a graph: int32 [batch, length] -> string [batch]; skips reserved ids."""
        import tensorflow as tf

        from t2t_lite.text.vocabulary import tf_visible

        ids = tf_visible(ids)
        ids = tf.ragged.boolean_mask(ids, (ids >= self.num_reserved_ids) & (ids < self.vocab_size))
        names = tf.ragged.map_flat_values(tf.gather, tf.constant(self._names), ids - self.num_reserved_ids)
        return tf.strings.reduce_join(names, axis=-1, separator=" ")


class PerformanceEncoder(EventEncoder):
    """Encodes performances with 310 ids: padding, end, 88 note-ons, 88 note-offs, 100 time shifts, 32 velocities.

    Notes have the 88 pitches of a piano, and all instruments are merged. Times are rounded to steps of 10 ms,
    and velocities to steps of 4. The sustain pedal is ignored. If several notes with the same pitch are sounding, `off`
    ends the note that began first. To end a later note instead, the current velocity event is repeated before `off`,
    once for each sounding note that began earlier.
    """

    def __init__(self):
        names = [f"{event}{pitch}" for event in ("on", "off") for pitch in PITCHES]
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
                    f"has a note of pitch {note.pitch} at {note.start:.2f} s. Expected {LOWEST} to {HIGHEST}, as on a "
                    "piano."
                )
            start = int(note.start * _STEPS + 0.5)
            events += [(start, number, False), (max(start + 1, int(note.end * _STEPS + 0.5)), number, True)]
        ids, now, velocity, playing = [], 0, None, collections.defaultdict(list)
        for step, number, is_end in sorted(events):
            if step - now > _LONGEST_PAUSE * _STEPS:
                seconds = (step - now) / _STEPS
                raise UserError(f"has a pause of {seconds:,.0f} s. Expected at most {_LONGEST_PAUSE} s.")
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
        """Decodes ids; a note without an end lasts until the end of the piece: see `EventEncoder`."""
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


class ChoraleEncoder(EventEncoder):
    """Encodes four-voice pieces with 91 ids: padding, end, silence, and the 88 pitches of a piano.

    Each step lasts a 16th note and has four ids, for soprano, alto, tenor and bass. The ids do not distinguish a
    held note from a repeated note.
    """

    def __init__(self):
        self._silence = self.num_reserved_ids
        self._lowest = self._silence + 1
        super().__init__(["-", *map(str, PITCHES)], [(self._lowest, len(PITCHES))])

    def encode_steps(self, steps):
        """Encodes steps, which are lists of four pitches from the highest voice to the lowest; -1 is silence.

        Raises:
            UserError: a pitch is outside the range of a piano.
        """
        pitches = [*itertools.chain.from_iterable(steps)]
        if wrong := [pitch for pitch in pitches if pitch != SILENCE and pitch not in PITCHES]:
            raise UserError(
                f"has a note of pitch {wrong[0]}. Expected {LOWEST} to {HIGHEST}, or {SILENCE} for silence."
            )
        return [self._silence if pitch == SILENCE else self._lowest + pitch - LOWEST for pitch in pitches]

    def encode_notes(self, notes):
        """Encodes notes; unless they have four tracks, the voices are assigned by pitch: see `EventEncoder`.

        A note is assigned to the steps in whose middle it sounds, so its start and end may shift by half a step.
        """
        tracks = sorted({note.track for note in notes})
        last = max((note.end for note in notes), default=0.0)
        steps = []
        for number in range(int(last / _SECONDS + 0.5)):
            now = (number + 0.5) * _SECONDS
            playing = [note for note in notes if note.start <= now < note.end]
            if len(tracks) == VOICES:
                sounding = {note.track: note.pitch for note in playing}
                steps.append([sounding.get(track, SILENCE) for track in tracks])
            else:
                pitches = sorted({note.pitch for note in playing}, reverse=True)[:VOICES]
                steps.append(pitches + [SILENCE] * (VOICES - len(pitches)))
        return self.encode_steps(steps)

    def decode_notes(self, ids):
        """Decodes ids; each voice becomes a track: see `EventEncoder`."""
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
        """Returns the number of ids, because each step of each voice counts as a note, even if it is silent."""
        return len(ids)
