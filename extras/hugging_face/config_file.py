"""Reads the `config.json` of a Hugging Face model, without importing TensorFlow."""

import os
import re

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.files import folders

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", re.ASCII)


def read_config(path, output_dir):
    """Returns the contents of the `config.json` in a Hugging Face folder, a dict.

    Raises:
        UserError: the folder or the file is missing, the file is not JSON, or `output_dir` is not new.
    """
    folders.check_new(output_dir)
    if _HUB_NAME.fullmatch(path) and not os.path.exists(path):
        raise UserError(
            f"{path}: no such folder. If this is the name of a model on the Hub, download it first: "
            f"hf download {path} --local-dir={path.rpartition('/')[2]}"
        )
    return files.read_json(os.path.join(path, "config.json"))
