"""Mirrors the download and archive functions of tensor2tensor's data_generators/generator_utils.py."""

import gzip
import os
import shutil

from t2t_lite import files
from t2t_lite.corpora import downloads, source_files
from t2t_lite.extras.tensor2tensor import names_elsewhere
from t2t_lite.files.file_system import rename

__getattr__ = names_elsewhere(__name__)


def maybe_download(directory, filename, uri):
    """Downloads a file unless it exists, and returns its path, `<directory>/<filename>`.

    Raises:
        UserError: the download failed.
    """
    path = os.path.join(directory, filename)
    if not files.exists(path):
        name = source_files.archive_name(uri)
        # `directory` may have another file with the name in the URI.
        folder = directory if name == filename else f"{path}.download"
        downloads.provide([[uri, [name]]], folder)
        if name != filename:
            rename(os.path.join(folder, name), path)
            files.remove(folder)
    return path


def gunzip_file(gz_path, new_path):
    """Unpacks a .gz file, unless `new_path` exists."""
    if files.exists(new_path):
        return
    with files.replacing(new_path) as temporary, gzip.open(gz_path) as packed, open(temporary, "wb") as file:
        shutil.copyfileobj(packed, file)


def shuffle_dataset(filenames, extra_fn=None):
    """Does nothing, because t2t-datagen already shuffles the records that it writes."""
