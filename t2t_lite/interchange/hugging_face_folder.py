"""Writes the folder of a model for Hugging Face Transformers."""

import json
import os

from t2t_lite.files import folders
from t2t_lite.interchange.safetensors_file import write_tensors


def write_hugging_face_folder(path, state, contents):
    """Writes `model.safetensors` and other files; the folder appears when everything is written.

    Args:
        path: str, a new or empty folder.
        state: {name: float32 array}.
        contents: {name of a file: bytes, or what JSON can hold}.

    Returns:
        `path`.

    Raises:
        Failure: writing failed; nothing is left behind.
    """

    def write(folder):
        write_tensors(os.path.join(folder, "model.safetensors"), state)
        for name, content in contents.items():
            if not isinstance(content, bytes):
                content = (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
            folders.write_file(folder, name, content)

    return folders.write_folder(path, write)
