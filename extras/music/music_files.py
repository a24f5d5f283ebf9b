"""What is read and written of music: primers, continuations, their sound, and pictures of them."""

import logging
import os

import numpy as np

from t2t_lite import files
from t2t_lite.errors import UserError, located
from t2t_lite.extras.music.event_encoder import HIGHEST, LOWEST
from t2t_lite.extras.music.midi_files import midi_bytes, read_midi, wav_bytes
from t2t_lite.visualization.pictures import COLORS

_LOGGER = logging.getLogger("t2t_lite")
ENDINGS = (".mid", ".midi")
_PIXELS_A_SECOND, _PIXELS_A_PITCH = 24, 4
_BLACK_KEYS = (1, 3, 6, 8, 10)
_WIDEST = 2**15


def encode_midi(path, encoder, warn=_LOGGER.warning):
    """Returns the ids of a MIDI file; `warn` is as of `read_midi`. Raises `UserError`, which names the file."""
    notes = read_midi(path, warn)
    with located(path):
        return encoder.encode_notes(notes)


def read_primers(path, encoders):
    """Returns the ids of a MIDI file, or of each of a folder's in the order of their paths, as a list of lists."""
    paths = files.find_files(path, ENDINGS) if files.is_folder(path) else [path]
    return [encode_midi(name, encoders["targets"]) for name in paths]


def write_music(path, answers, encoders):
    """Returns {path: MIDI} of all outputs, each after its primer, and beside them a PNG: see `write_piano_rolls`.

    Of several outputs, the files are <path>-1.mid and so on, a line's before those of the next one.
    """
    pieces = _pieces(path, answers, encoders)
    return _by_name(path, pieces, midi_bytes) | {f"{os.path.splitext(path)[0]}.png": _drawn(pieces)}


def write_sounds(path, answers, encoders):
    """Returns {path: WAV} of all outputs, each after its primer; of several as `write_music` names them."""
    return _by_name(path, _pieces(path, answers, encoders), wav_bytes)


def write_piano_rolls(path, answers, encoders):
    """Returns {path: PNG} with a piano roll for each output, one below the other; a line marks the primer's end."""
    return {path: _drawn(_pieces(path, answers, encoders))}


def _by_name(path, pieces, as_bytes):
    """Returns {path: bytes} of the notes of pieces, with numbers in the names of several."""
    base, ending = os.path.splitext(path)
    names = [path] if len(pieces) == 1 else [f"{base}-{number}{ending}" for number in range(1, len(pieces) + 1)]
    return {name: as_bytes(notes) for name, (notes, _) in zip(names, pieces, strict=True)}


def _pieces(path, answers, encoders):
    """Returns [(notes, seconds of the primer)]."""
    encoder, pieces = encoders["targets"], []
    for given, outputs in answers:
        given = encoder.encode(given) if isinstance(given, str) else given or []
        primer = max((note.end for note in encoder.decode_notes(given)), default=0.0)
        pieces += [(encoder.decode_notes([*given, *ids]), primer) for ids in outputs]
    if not pieces:
        raise UserError(f"{path}: there is no music to write. Expected inputs.")
    return pieces


def _drawn(pieces):
    import tensorflow as tf

    rolls = [_roll(*piece) for piece in pieces]
    width = max(roll.shape[1] for roll in rolls)
    wide = [np.pad(roll, ((4, 4), (0, width - roll.shape[1]), (0, 0)), constant_values=255) for roll in rolls]
    return tf.io.encode_png(np.concatenate(wide)).numpy()


def _roll(notes, primer):
    """Returns uint8 [rows, columns, 3] of notes: time from left to right, a row of pixels for each pitch."""
    seconds = max((note.end for note in notes), default=1.0)
    width = min(1 + int(seconds * _PIXELS_A_SECOND), _WIDEST)
    rows = np.full((HIGHEST - LOWEST + 1, width, 3), 255, np.uint8)
    for pitch in range(LOWEST, HIGHEST + 1):
        rows[HIGHEST - pitch] -= 16 * (pitch % 12 in _BLACK_KEYS)
    rows[:, min(int(primer * _PIXELS_A_SECOND), width - 1)] = 128
    for note in notes:
        begin, end = (int(time * _PIXELS_A_SECOND) for time in (note.start, note.end))
        color = COLORS[note.track % len(COLORS)].removeprefix("#")
        rows[HIGHEST - note.pitch, begin : max(begin + 1, end)] = np.frombuffer(bytes.fromhex(color), np.uint8)
    return np.repeat(rows, _PIXELS_A_PITCH, axis=0)
