"""The problem music_jsb16: Bach's chorales from a published data set.

The data file, which may be compressed, is read from `tmp_dir`, or downloaded if it is not there. docs/extras/music.md
has examples.
"""

from t2t_lite.corpora import downloads, plain_text, source_files
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError, located
from t2t_lite.extras.music.music_own import MusicProblem
from t2t_lite.extras.music.performance_encoder import VOICES, ChoraleEncoder
from t2t_lite.files.safe_json import parse_json
from t2t_lite.registry import register_problem

_NAME = "Jsb16thSeparated.json"
_URL = f"https://raw.githubusercontent.com/czhuang/JSB-Chorales-dataset/master/{_NAME}"
_IN_FILE = {DatasetSplit.TRAIN: "train", DatasetSplit.EVAL: "valid"}


@register_problem
class MusicJsb16(MusicProblem):
    """Chorales by J. S. Bach, in steps of 16th notes (Boulanger-Lewandowski et al. 2012; Huang et al. 2018)."""

    encoder_class = ChoraleEncoder
    sequence_length = 512
    dataset_splits = [{"split": split, "shards": 1} for split in _IN_FILE]  # noqa: RUF012

    def prepare_generation(self, data_dir, tmp_dir):
        """Finds the data file in `tmp_dir`, or downloads it."""
        downloads.provide([[_URL, ("text", f"{_NAME}*")]], tmp_dir)
        super().prepare_generation(data_dir, tmp_dir)

    def generate_pieces(self, data_dir, tmp_dir, dataset_split):
        """Yields the ids of each piece; the four voices of a step are next to each other."""
        source = next(iter(source_files.find_texts(tmp_dir, f"{_NAME}*", _URL)))
        with plain_text.naming_errors(source), plain_text.open_binary(source) as file:
            pieces = parse_json(file.read(), str(source), schema={_IN_FILE[dataset_split]: list})
        encoder = ChoraleEncoder()
        for number, steps in enumerate(pieces[_IN_FILE[dataset_split]], 1):
            with located(f"{source}: {_IN_FILE[dataset_split]}, piece {number}"):
                if not isinstance(steps, list) or not all(map(_is_step, steps)):
                    raise UserError(f"is not a list of steps with {VOICES} pitches each. Copy the file again.")
                ids = encoder.encode_steps(steps)
                if {*ids} <= {*encoder.encode("-")}:
                    raise UserError("contains only silence. Remove the piece.")
            yield ids


def _is_step(step):
    return isinstance(step, list) and len(step) == VOICES and all(type(pitch) is int for pitch in step)
