"""Music, each event of which is predicted from those before it."""

import types

from t2t_lite.data.base_problem import Problem
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import NotWritten
from t2t_lite.extras.music import music_files
from t2t_lite.extras.music.performance_encoder import PerformanceEncoder
from t2t_lite.tasks.language_model import LanguageModelTask
from t2t_lite.text.vocabulary import EOS_ID


class MusicProblem(Problem):
    """Pieces in rows of `sequence_length` events. Subclasses write that number and `generate_pieces`.

    The ids of a piece end in 1; its last row may be shorter. The development and the test set keep their order, so
    that windows may slide over them. Evaluations give the loss in nats per note.

    Attributes:
        encoder_class: an `EventEncoder` that takes no arguments.
        most_semitones: int, by how many semitones a training row is transposed at most, up and down.
    """

    features = types.MappingProxyType({"targets": 2})
    task = LanguageModelTask.name
    unit = "piece"
    eval_decode_metric = None
    loss_metrics = ("nats_per_note",)
    decode_defaults = types.MappingProxyType({"sampling": True, "extra_length": 512})
    readers = types.MappingProxyType(dict.fromkeys(("mid", "midi"), music_files.read_primers))
    writers = types.MappingProxyType(
        dict.fromkeys(("mid", "midi"), music_files.write_music)
        | {"png": music_files.write_piano_rolls, "wav": music_files.write_sounds}
    )
    ordered_splits = (DatasetSplit.EVAL, DatasetSplit.TEST)
    rows_are_windows = True
    encoder_class = PerformanceEncoder
    most_semitones = 3

    @property
    def sequence_length(self):
        """The number of ids in a row."""
        raise NotWritten(f"{type(self).__name__}: write sequence_length.")

    def generate_pieces(self, data_dir, tmp_dir, dataset_split):
        """Yields the ids of each piece, without an end."""
        raise NotWritten(f"{type(self).__name__}: write generate_pieces.")

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"targets": ids of a row}, and counts the notes."""
        encoder = self.feature_encoders(data_dir)["targets"]
        for piece in self.generate_pieces(data_dir, tmp_dir, dataset_split):
            self.unit_counts["note"] += encoder.count_notes(piece)
            ids = [*piece, EOS_ID]
            for start in range(0, len(ids), self.sequence_length):
                yield {"targets": ids[start : start + self.sequence_length]}

    def feature_encoders(self, data_dir):
        """Returns the encoder of the events."""
        return {"targets": self.encoder_class()}

    def generation_settings(self):
        """Returns the length of the rows."""
        return {**super().generation_settings(), "sequence_length": self.sequence_length}

    def augment(self, batch, seeds):
        """Transposes each row, as far as its lowest and its highest note may move."""
        import tensorflow as tf

        from t2t_lite.data.random_numbers import uniform_numbers

        ids = batch["targets"]
        drawn = uniform_numbers(seeds, 1, 1)[:, 0, :, 0] * (2 * self.most_semitones + 1)
        shift = tf.cast(tf.floor(drawn), tf.int32) - self.most_semitones  # [rows, 1]
        ranges = self.encoder_class().pitches
        for first, count in ranges:
            is_pitch = (ids >= first) & (ids < first + count)
            lowest = tf.reduce_min(tf.where(is_pitch, ids, first + count - 1), 1, keepdims=True)
            highest = tf.reduce_max(tf.where(is_pitch, ids, first), 1, keepdims=True)
            shift = tf.minimum(tf.maximum(shift, first - lowest), first + count - 1 - highest)
        for first, count in ranges:
            ids = tf.where((ids >= first) & (ids < first + count), ids + shift, ids)
        return {**batch, "targets": ids}

    def max_length(self, model_hparams):
        """Returns `sequence_length`, whatever the hyperparameters say."""
        return self.sequence_length
