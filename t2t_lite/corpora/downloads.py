"""Finds a problem's corpora in `tmp_dir` or in a prepared tensorflow-datasets set, or downloads them.

tensorflow-datasets downloads the files. An archive is stored in `tmp_dir` under its published name. If the user has
already put a copy of the archive there, this copy is used: existing files are never downloaded again.
"""

import contextlib
import errno
import os
import socket
import threading
import urllib.parse
import urllib.request

from t2t_lite import files
from t2t_lite.cli.console import Progress
from t2t_lite.corpora import plain_text, source_files
from t2t_lite.errors import LOGGER, UserError, first_line
from t2t_lite.files.file_system import rename, status, walk
from t2t_lite.files.hashes import file_sha256

_MEGABYTE = 1_000_000


def are_there(sources, tmp_dir):
    """Returns whether all corpora of a `source_data_files` list are in `tmp_dir`, as archives or unpacked."""
    return all(source_files.find_members(tmp_dir, members, url) is not None for url, members in sources)


def provide(sources, tmp_dir, checksums=None):
    """Downloads the files of a `source_data_files` list that are missing in `tmp_dir`, and checks all archives.

    An archive is checked against the SHA-256 in `<archive>.sha256`, which is written after a download, or else against
    the SHA-256 in `checksums`. If the size of a user's archive differs from the published size, a message is logged,
    but no error is raised, since the user may have repacked or shortened the archive on purpose.

    Args:
        sources: [[url, members], …].
        tmp_dir: the folder.
        checksums: {url: (size in bytes, SHA-256 in hex)} for published archives.

    Raises:
        UserError: a download fails (the message says which file to put where), `tmp_dir` is not writable, or the
            SHA-256 of an archive differs.
    """
    checksums = checksums or {}
    for url, members in sources:
        path = os.path.join(tmp_dir, source_files.archive_name(url))
        is_there = source_files.find_members(tmp_dir, members, url) is not None or files.exists(path)
        if not is_there and "://" in url:
            _download(url, tmp_dir, checksums.get(url))
        if files.exists(path):
            _check(path, url, checksums.get(url))


def find_prepared(name, splits, tmp_dir):
    """Returns the folder of a prepared tensorflow-datasets set, or None; never downloads or prepares a set.

    The set is looked up first in the data folder of tensorflow-datasets, which is $TFDS_DATA_DIR or else
    ~/tensorflow_datasets, and then in `tmp_dir`. The newest version is preferred.

    Args:
        name: name of the set, such as "wmt14_translate/de-en".
        splits: list of str, names of the splits that the set must have.
        tmp_dir: the folder.
    """
    for root in (os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets", tmp_dir):
        versions = files.list_files(os.path.join(os.path.expanduser(root), name), ".*")
        folders = [folder for folder in versions if files.exists(os.path.join(folder, "dataset_info.json"))]
        for folder in sorted(folders, key=version_order, reverse=True):
            if set(splits) <= set(prepared_builder(folder).info.splits):
                return folder
    return None


def version_order(folder):
    """Returns the version number in the name of a set's folder as a sort key, such as [1, 10, 0]."""
    return [int(part) if part.isdigit() else -1 for part in os.path.basename(folder).split(".")]


def prepared_builder(folder):
    """Returns the tensorflow-datasets builder of a prepared set. Raises `UserError` if the set is damaged."""
    import tensorflow_datasets as tfds

    # `tfds.builder(name)` is not used, because it accesses the network for sets that are not on disk.
    with _naming_prepared(folder):
        return tfds.builder_from_directory(folder)


@contextlib.contextmanager
def _naming_prepared(folder):
    """Context manager that turns any error that tensorflow-datasets raises about a folder into a `UserError`."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:  # reading JSON, protocol buffers and records can raise many kinds of errors
        raise UserError(f"{folder}: damaged ({first_line(error)}). Delete the folder and prepare it again.") from error


def read_prepared(folder, split, languages):
    """Yields the sentence pairs in a split of a prepared set as {"inputs": str, "targets": str}.

    Args:
        folder: the result of `find_prepared`.
        split: str, name of the split in the set.
        languages: (name of the feature with the inputs, name of the feature with the targets).

    Raises:
        UserError: a language is missing, or a file is damaged.
    """
    import tensorflow_datasets as tfds

    from t2t_lite.corpora import wmt_files

    builder = prepared_builder(folder)
    features = builder.info.features
    for language in languages:
        if not isinstance(features, dict | tfds.features.FeaturesDict) or language not in features:
            raise UserError(f"{folder}: has no feature {language}. Expected the features {' and '.join(languages)}.")
        if not isinstance(features[language], tfds.features.Text):
            raise UserError(f"{folder}: its feature {language} is not a text. Expected tfds.features.Text.")
    # tensorflow-datasets does not replace the entities in the test sets' .sgm files.
    decode = wmt_files.unescape if split == "test" else str
    for inputs, targets in prepared_examples(builder, folder, split, languages):
        with _naming_prepared(folder):
            texts = (plain_text.clean(decode(text.decode("utf-8"))) for text in (inputs, targets))
            yield dict(zip(("inputs", "targets"), texts, strict=True))


def prepared_examples(builder, folder, split, names):
    """Yields the named features, as NumPy values, of each example in a split of a prepared set."""
    import tensorflow_datasets as tfds

    one_after_another = tfds.ReadConfig(interleave_cycle_length=1)
    with _naming_prepared(folder):
        dataset = builder.as_dataset(split=split, read_config=one_after_another)
        for batch in dataset.batch(1024).prefetch(2).as_numpy_iterator():
            yield from zip(*(batch[name] for name in names), strict=True)


def _check(path, url, expected):
    """Raises `UserError` if a file's SHA-256 differs from the recorded or published value."""
    length, changed, _ = status(path)
    recorded = path + ".sha256"
    if files.exists(recorded):
        sha256, origin = files.read_bytes(recorded).decode("ascii", errors="replace").split(" ")[0], recorded
    elif expected is None:
        return
    elif length != expected[0]:
        LOGGER.info(
            f"{path}: has {length:,} bytes, but the file published at {url} has {expected[0]:,}; using the local file"
        )
        return
    else:
        sha256, origin = expected[1], f"the file published at {url}"
    if (digest := file_sha256(path, length, changed)) != sha256:
        advice = "Delete both files" if origin == recorded else "Delete the file"
        raise UserError(
            f"{path}: its SHA-256 is {digest[:12]}…. Expected {sha256[:12]}… ({origin}). {advice} and run again to "
            "download the file again."
        )


def _download(url, tmp_dir, expected):
    """Downloads a URL to `tmp_dir`; the file appears there only once it is complete and has been checked."""
    name = source_files.archive_name(url)
    path, folder = os.path.join(tmp_dir, name), os.path.join(tmp_dir, name + ".download")
    files.make_folder(tmp_dir)
    files.check_writable(tmp_dir)
    LOGGER.info(f"downloading {url} to {path}{f' ({expected[0] / _MEGABYTE:,.0f} MB)' if expected else ''}")
    try:
        with _showing_growth(name, folder, expected):
            fetched = _fetch(url, folder)
        length, changed, _ = status(fetched)
        sha256 = file_sha256(fetched, length, changed)
        if expected not in (None, (length, sha256)):
            raise UserError(
                f"{url}: received {length:,} bytes with SHA-256 {sha256[:12]}…, which were discarded. Expected "
                f"{expected[0]:,} bytes with SHA-256 {expected[1][:12]}…. Run again, or put the right {name} into "
                f"{tmp_dir}."
            )
        if expected is None:
            files.write_bytes(path + ".sha256", f"{sha256}  {name}\n".encode())
        rename(fetched, path)
    finally:
        with contextlib.suppress(Exception):  # removal may raise Python's or TensorFlow's error
            files.remove(folder)


def _fetch(url, folder):
    """Downloads a URL with tensorflow-datasets; returns the path of the file in `folder`."""
    import tensorflow_datasets as tfds

    tfds.disable_progress_bar()  # replaced by this module's progress messages
    try:
        host = urllib.parse.urlsplit(url).hostname
        if host and not urllib.request.getproxies():
            # Without a network, this look-up fails immediately, while a download would be retried for minutes.
            socket.getaddrinfo(host, None)
        return os.fspath(tfds.download.DownloadManager(download_dir=folder).download(url))
    except Exception as error:  # the errors of HTTP, FTP and other transports have no common class
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        name = source_files.archive_name(url)
        raise UserError(
            f"{url}: the download failed ({first_line(error)}). Run again, or download the file yourself and put it "
            f"into {os.path.dirname(folder)} as {name}."
        ) from None


@contextlib.contextmanager
def _showing_growth(name, folder, expected):
    """Reports the progress of a download, which is measured by the sizes of the files in its folder."""
    progress = Progress(f"downloading {name}", "MB", expected and round(expected[0] / _MEGABYTE))
    is_over = threading.Event()

    def show():
        with contextlib.suppress(Exception):  # files may be moved while they are counted
            sizes = (status(os.path.join(where, file)).size for where, _, names in walk(folder) for file in names)
            progress.add(round(sum(sizes) / _MEGABYTE) - progress.count)

    def watch():
        while not is_over.wait(1):
            show()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
    show()
    progress.done()
