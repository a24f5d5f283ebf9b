"""`music_own`: learns to continue music from the user's own MIDI files.

    t2t-datagen --problem=music_own --train_files=train --dev_files=dev --data_dir=D

Files are MIDI files (.mid, .midi), or folders that are searched for MIDI files at any depth. `D/music_own.json` stores
all settings, so that later commands need only `--data_dir=D`.
"""

import functools
import os
import types

import numpy as np

from t2t_lite import files, registry
from t2t_lite.corpora.plain_text import FewWarnings, report
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import LOGGER, NotWritten, UserError, located
from t2t_lite.extras.music.midi_events import midi_bytes, read_midi, wav_bytes
from t2t_lite.extras.music.performance_encoder import HIGHEST, LOWEST, PerformanceEncoder
from t2t_lite.problems.own_problem import OwnProblem, kept
from t2t_lite.problems.own_settings import own_settings
from t2t_lite.tasks.task import LanguageModelTask
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization.drawing import COLORS

ENDINGS = (".mid", ".midi")
_PIXELS_A_SECOND, _PIXELS_A_PITCH = 24, 4
_BLACK_KEYS = (1, 3, 6, 8, 10)
_WIDEST = 2**15


def encode_midi(path, encoder, warn=LOGGER.warning):
    """Encodes a MIDI file as ids; `warn` is as in `read_midi`. Raises `UserError`, which names the file."""
    notes = read_midi(path, warn)
    with located(path):
        return encoder.encode_notes(notes)


def read_primers(path, encoders):
    """Returns one list of ids per MIDI file. `path` is a file or a folder; a folder's files are sorted by path."""
    paths = files.find_files(path, ENDINGS) if files.is_folder(path) else [path]
    return [encode_midi(name, encoders["targets"]) for name in paths]


def write_music(path, answers, encoders):
    """Returns {path: bytes} with one MIDI file per output, which begins with the output's primer, and one PNG.

    For the PNG, see `write_piano_rolls`. If there are several outputs, their files are <path>-1.mid, <path>-2.mid and
    so on, in the order of the inputs.
    """
    pieces = _pieces(path, answers, encoders)
    return _by_name(path, pieces, midi_bytes) | {f"{os.path.splitext(path)[0]}.png": _picture(pieces)}


def write_sounds(path, answers, encoders):
    """Returns {path: bytes} with one WAV file per output, including its primer; for names, see `write_music`."""
    return _by_name(path, _pieces(path, answers, encoders), wav_bytes)


def write_piano_rolls(path, answers, encoders):
    """Returns {path: bytes} with a PNG that stacks the outputs' piano rolls; a line marks the end of each primer."""
    return {path: _picture(_pieces(path, answers, encoders))}


def _by_name(path, pieces, as_bytes):
    """Returns {path: bytes} for the notes of each piece; if there are several pieces, the paths are numbered."""
    base, ending = os.path.splitext(path)
    names = [path] if len(pieces) == 1 else [f"{base}-{number}{ending}" for number in range(1, len(pieces) + 1)]
    return {name: as_bytes(notes) for name, (notes, _) in zip(names, pieces, strict=True)}


def _pieces(path, answers, encoders):
    """Returns a list of (notes, length of the primer in seconds), one per output."""
    encoder, pieces = encoders["targets"], []
    for given, outputs in answers:
        given = encoder.encode(given) if isinstance(given, str) else given or []
        primer = max((note.end for note in encoder.decode_notes(given)), default=0.0)
        pieces += [(encoder.decode_notes([*given, *ids]), primer) for ids in outputs]
    if not pieces:
        raise UserError(f"{path}: nothing to write, because there are no inputs. Expected one input per line.")
    return pieces


def _picture(pieces):
    import tensorflow as tf

    rolls = [_roll(*piece) for piece in pieces]
    width = max(roll.shape[1] for roll in rolls)
    wide = [np.pad(roll, ((4, 4), (0, width - roll.shape[1]), (0, 0)), constant_values=255) for roll in rolls]
    return tf.io.encode_png(np.concatenate(wide)).numpy()


def _roll(notes, primer):
    """Draws a piano roll, uint8 [rows, columns, 3], with time from left to right and high pitches at the top."""
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


class MusicProblem(Problem):
    """Splits pieces into rows of `sequence_length` ids. Subclasses define `sequence_length` and `generate_pieces`.

    The ids of a piece end in 1, and the last row of a piece may be shorter. The rows of the development and test
    sets stay in order, so that sliding windows can be used. Evaluations report the loss in nats per note.

    Attributes:
        encoder_class: subclass of `EventEncoder` whose constructor takes no arguments.
        most_semitones: int, the largest number of semitones by which training rows are transposed up or down.
    """

    features = types.MappingProxyType({"targets": 2})
    task = LanguageModelTask.name
    unit = "piece"
    eval_decode_metric = None
    loss_metrics = ("nats_per_note",)
    decode_defaults = types.MappingProxyType({"sampling": True, "extra_length": 512})
    readers = types.MappingProxyType(dict.fromkeys(("mid", "midi"), read_primers))
    writers = types.MappingProxyType(
        dict.fromkeys(("mid", "midi"), write_music) | {"png": write_piano_rolls, "wav": write_sounds}
    )
    ordered_splits = (DatasetSplit.EVAL, DatasetSplit.TEST)
    rows_are_windows = True
    encoder_class = PerformanceEncoder
    most_semitones = 3

    @property
    def sequence_length(self):
        """The length of each row, in ids."""
        raise NotWritten(f"{type(self).__name__}: write sequence_length.")

    def generate_pieces(self, data_dir, tmp_dir, dataset_split):
        """Yields the ids of each piece, without the final EOS."""
        raise NotWritten(f"{type(self).__name__}: write generate_pieces.")

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"targets": ids of a row}; adds the number of notes to `unit_counts`."""
        encoder = self.feature_encoders(data_dir)["targets"]
        for piece in self.generate_pieces(data_dir, tmp_dir, dataset_split):
            self.unit_counts["note"] += encoder.count_notes(piece)
            ids = [*piece, EOS_ID]
            for start in range(0, len(ids), self.sequence_length):
                yield {"targets": ids[start : start + self.sequence_length]}

    def feature_encoders(self, data_dir):
        """Returns {"targets": the event encoder}."""
        return {"targets": self.encoder_class()}

    def generation_settings(self):
        """Adds the length of the rows to the settings: see `Problem.generation_settings`."""
        return {**super().generation_settings(), "sequence_length": self.sequence_length}

    def augment(self, batch, seeds):
        """Transposes each row by a random interval, within the range of a piano."""
        import tensorflow as tf

        from t2t_lite.data.random_numbers import uniform_numbers

        ids = batch["targets"]
        numbers = uniform_numbers(seeds, 1, 1)[:, 0, :, 0] * (2 * self.most_semitones + 1)
        shift = tf.cast(tf.floor(numbers), tf.int32) - self.most_semitones  # [rows, 1]
        ranges = self.encoder_class().pitches
        for first, count in ranges:
            is_pitch = (ids >= first) & (ids < first + count)
            lowest = tf.reduce_min(tf.where(is_pitch, ids, first + count - 1), 1, keepdims=True)
            highest = tf.reduce_max(tf.where(is_pitch, ids, first), 1, keepdims=True)
            shift = tf.minimum(tf.maximum(shift, first - lowest), first + count - 1 - highest)
        for first, count in ranges:
            ids = tf.where((ids >= first) & (ids < first + count), ids + shift, ids)
        return {**batch, "targets": ids}


@registry.register_problem
class MusicOwn(OwnProblem, MusicProblem):
    """Music from the user's own MIDI files, as performance events."""

    settings = own_settings("problem", "sequence_length", "files", sequence_length=1024)
    file_endings = ENDINGS
    example_flags = "--train_files=train --dev_files=dev"
    expected_lines = "MIDI files, or folders of them"
    sample_unit = "pieces"

    sequence_length = kept("sequence_length", "The length of each row, in ids.")

    @functools.cached_property
    def _warn(self):
        return FewWarnings("further warnings about MIDI files are not shown")

    def generate_pieces(self, data_dir, tmp_dir, dataset_split):
        """Yields the ids of the events in each file."""
        self.read_config(data_dir)
        encoder = self.encoder_class()
        for facts in self.files_of(dataset_split):
            try:
                yield encode_midi(facts["path"], encoder, self._warn)
            except UserError as error:
                report(str(error), self.on_bad_line)

    generate_samples = generate_pieces  # for `check_corpus`
