"""Checks the files of a tensor2tensor model before its import, without loading TensorFlow or Keras."""

from t2t_lite import files, registry
from t2t_lite.extras.tensor2tensor.subword_text_encoder import read_pieces
from t2t_lite.files import folders
from t2t_lite.runs.locating import find_checkpoint


def check_tensor2tensor(path, vocabularies, output_dir, hparams_set=""):
    """Raises `UserError` if a file to import is missing, the hparams set is unknown, or `output_dir` is not new."""
    folders.check_new(output_dir)
    find_checkpoint(path)
    if hparams_set:
        registry.hparams(hparams_set)
    for file in vocabularies:
        read_pieces(files.read_bytes(file), file)
