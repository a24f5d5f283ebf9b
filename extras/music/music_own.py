"""`music_own`: the user's own MIDI files, for a model that continues music.

    t2t-datagen --problem=music_own --train_files=train --dev_files=dev --data_dir=D

Files are MIDI (.mid, .midi), or folders of them, at any depth. `D/music_own.json` stores everything that was asked for,
so that later commands need only `--data_dir=D`.
"""

import functools

from t2t_lite import registry
from t2t_lite.corpora.bad_lines import FewWarnings, report
from t2t_lite.errors import UserError
from t2t_lite.extras.music.music_files import ENDINGS, encode_midi
from t2t_lite.extras.music.music_problem import MusicProblem
from t2t_lite.problems.own_problem import OwnProblem, kept
from t2t_lite.problems.own_settings import own_settings


@registry.register_problem
class MusicOwn(OwnProblem, MusicProblem):
    """MIDI files given to `configure`, as the events of a performance."""

    settings = own_settings("problem", "sequence_length", "files", sequence_length=1024)
    file_endings = ENDINGS
    example_flags = "--train_files=train --dev_files=dev"
    expected_lines = "MIDI files, or folders of them"
    sample_unit = "pieces"

    sequence_length = kept("sequence_length", "The number of ids in a row.")

    @functools.cached_property
    def _warn(self):
        return FewWarnings("further warnings about MIDI files are not shown")

    def check_split(self, split, watch, data_dir, tmp_dir):
        """See `OwnProblem.check_split`."""
        for _ in watch(self.generate_pieces(data_dir, tmp_dir, split)):
            pass

    def generate_pieces(self, data_dir, tmp_dir, dataset_split):
        """Yields the ids of each file."""
        self.read_config(data_dir)
        encoder = self.encoder_class()
        for facts in self.files_of(dataset_split):
            try:
                yield encode_midi(facts["path"], encoder, self._warn)
            except UserError as error:
                report(str(error), self.on_bad_line)
