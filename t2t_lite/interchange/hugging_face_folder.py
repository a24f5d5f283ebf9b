"""Writes the folder of a model for Hugging Face Transformers."""

import json
import os
from typing import NamedTuple

from t2t_lite.export.added_files import added_files
from t2t_lite.files import folders
from t2t_lite.interchange.safetensors_file import write_tensors


class Folder(NamedTuple):
    """The contents of the folder of a model.

    Attributes:
        title: str, title of README.md.
        use: str, Markdown: how to call it.
        config, tokenizer: dict, contents of `config.json` and `tokenizer_config.json`.
        tensors: {name: float32 array}.
        contents: {name of a further file: bytes, or a JSON value}.
        rows: {title: text}, further rows of the table in README.md.
    """

    title: str
    use: str
    config: dict
    tokenizer: dict
    tensors: dict
    contents: dict
    rows: dict = {}  # noqa: RUF012

    def write(self, path, answerer, license, command):
        """Writes the folder, which appears when everything is written.

        Args:
            path: str, a new or empty folder.
            answerer: Translator, Generator or Predictor, for README.md.
            license, command: see `export_hugging_face`.

        Returns:
            `path`.

        Raises:
            Failure: writing failed; nothing is left behind.
        """
        added = added_files(
            answerer,
            title=self.title,
            library="transformers",
            body=self.use,
            license=license,
            command=command,
            rows={"class": self.config["architectures"][0], **self.rows},
        )
        documents = {"config.json": self.config, "tokenizer_config.json": self.tokenizer, **added}

        def write(folder):
            write_tensors(os.path.join(folder, "model.safetensors"), self.tensors)
            for name, content in (self.contents | documents).items():
                if not isinstance(content, bytes):
                    content = (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
                folders.write_file(folder, name, content)

        return folders.write_folder(path, write)
