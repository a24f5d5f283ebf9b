"""The `config.json` of a model of Hugging Face; read without TensorFlow."""

import os
import re

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.files import folders

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", re.ASCII)


def read_config(path, output_dir):
    """Returns the contents of the `config.json` in a folder of Hugging Face, a dict.

    Raises:
        UserError: there is no such folder or file, it is not JSON, or `output_dir` is not new.
    """
    folders.check_new(output_dir)
    if _HUB_NAME.fullmatch(path) and not os.path.exists(path):
        raise UserError(
            f"{path}: no such folder. A model is imported from this machine; if that is its name on the Hub, download "
            f"it first: hf download {path} --local-dir={path.rpartition('/')[2]}"
        )
    return files.read_json(os.path.join(path, "config.json"))
