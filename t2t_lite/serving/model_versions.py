"""The versions of an export that a server has loaded: the newest, and those with a label.

    <export_dir>/1/saved_model.pb, variables/ …
    <export_dir>/2/…

A file of labels, {"stable": 1, "canary": 2}, keeps the versions that it names beside the newest one.
"""

import contextlib
import gc
import logging
import os
import re
import threading
import weakref

import tensorflow as tf

from t2t_lite.errors import Failure, UserError, first_line, shown
from t2t_lite.files import read_bytes
from t2t_lite.files.file_errors import translated
from t2t_lite.files.safe_json import MOST_BYTES, parse_json
from t2t_lite.serving.refusals import Refusal
from t2t_lite.serving.served_export import ServedExport

_LOGGER = logging.getLogger("t2t_lite")
_NAME = re.compile(r"\d{1,18}")
_LONGEST_END = 60.0  # seconds; a version that takes longer to load must not hold the server up


class ModelVersions:
    """Loads versions and finds them for requests; thread-safe, but for `refresh`.

    A version that is no longer wanted gets no new requests. It is freed when its last request is answered, since
    nothing else refers to it then.

    Args:
        name: str, the model's name in messages.
        folder: str, the export_dir.
        labels_path: str, JSON file of {label: version}, or None.
        load: function of a path that returns a ServedExport, ready for requests.
    """

    def __init__(self, name, folder, labels_path=None, load=None):
        self.name, self.folder, self._labels_path = name, folder, labels_path
        self._load = load or _load
        self._served, self._labels = {}, {}
        self._states = {}  # {version: (state, gRPC's code, message)}
        self._freed = []

    def refresh(self):
        """Loads what is wanted and drops the rest.

        Raises:
            UserError: there is no version, one cannot be loaded, or the labels are invalid. Then nothing has changed.
        """
        found = self._found()
        if not found:
            raise UserError(f"{self.folder}: no exports there. Expected folders 1, 2, … as t2t-exporter writes them.")
        labels = self._read_labels(found)
        wanted = sorted({max(found), *labels.values()})
        try:
            served = {number: self._served.get(number) or self._loaded(number, found[number]) for number in wanted}
        except UserError:
            for number in wanted:  # loaded in vain
                if self._states.get(number, ("",))[0] == "LOADING":
                    del self._states[number]
            raise
        retired = {number: export for number, export in self._served.items() if number not in served}
        for number, export in retired.items():
            self._states[number] = ("UNLOADING", "OK", "")
            weakref.finalize(export, self._end, number)
        self._states |= {number: ("AVAILABLE", "OK", "") for number in served}
        self._served, self._labels = served, labels

    def watch(self, seconds, stop):
        """Refreshes whenever a file of the exports or of the labels has changed, until the event `stop` is set."""
        before = ()  # the first time it looks in any case: files may have changed since the last `refresh`
        while not stop.wait(seconds):
            if self._freed:  # a loaded SavedModel refers to itself in many places
                self._freed.clear()
                gc.collect()
            try:
                if (now := self._fingerprint()) == before:
                    continue
                before, versions, labels = now, set(self._served), self._labels
                self.refresh()
            except (UserError, Failure) as error:
                kept = ", ".join(map(str, sorted(self._served)))
                before = None if isinstance(error, Failure) else before  # it may pass without a change of the files
                _LOGGER.warning(f"{error} What was loaded before is still served: {self.name}, {kept}.")
            else:
                if versions != set(self._served) or labels != self._labels:
                    _LOGGER.info(f"Now serving {self}.")

    def find(self, version=None, label=None):
        """Returns (version, ServedExport); by default of the newest one. Raises `Refusal`."""
        served = self._served
        if label is not None:
            version = self._of_label(label)
        request = f"Latest({self.name})" if version is None else f"Specific({self.name}, {version})"
        version = max(served, default=None) if version is None else version
        if version not in served:
            raise Refusal(f"Servable not found for request: {request}", "NOT_FOUND")
        return version, served[version]

    def states(self, version=None, label=None):
        """Returns [(version, state, gRPC's code, message)], newest first. Raises `Refusal`."""
        if label is not None:
            version = self._of_label(label)
        states = dict(self._states)
        if version is not None and version not in states:
            raise Refusal(f"Could not find version {version} of model {self.name}", "NOT_FOUND")
        return [(number, *states[number]) for number in sorted(states, reverse=True) if version in (None, number)]

    def is_available(self):
        """Whether a version can be used."""
        return bool(self._served)

    def __str__(self):
        labels = "".join(f", {label}={version}" for label, version in sorted(self._labels.items()))
        return f"{self.name}, version {', '.join(map(str, sorted(self._served)))}{labels}"

    def _of_label(self, label):
        if label not in self._labels:
            raise Refusal(f"Unrecognized servable version label: {label}")
        return self._labels[label]

    def _end(self, number):
        if self._states.get(number, ("",))[0] == "UNLOADING":  # it may have been loaded again, also in vain
            self._states[number] = ("END", "OK", "")
        self._freed.append(number)

    def _found(self):
        """Returns {version: path}."""
        with translated(self.folder):
            names = [name.rstrip("/") for name in tf.io.gfile.listdir(self.folder)]
            paths = {int(name): os.path.join(self.folder, name) for name in names if _NAME.fullmatch(name)}
            is_there = {number: tf.io.gfile.exists(f"{path}/saved_model.pb") for number, path in paths.items()}
        return {number: path for number, path in paths.items() if is_there[number]}

    def _read_labels(self, found):
        if self._labels_path is None:
            return {}
        labels = parse_json(read_bytes(self._labels_path, MOST_BYTES), self._labels_path, schema={str: int})
        for label, version in labels.items():
            if version not in found:
                raise UserError(
                    f"{self._labels_path}: {shown(label)}: no version {version} in {self.folder}. Expected one of "
                    f"{', '.join(map(str, sorted(found)))}."
                )
        return labels

    def _loaded(self, number, path):
        self._states[number] = ("LOADING", "OK", "")
        try:
            return self._load(path)
        except Exception as error:  # what a damaged file raises is of many kinds
            message = f"{path}: cannot be loaded: {first_line(error)}. Export it again, or remove this folder."
            self._states[number] = ("END", "INTERNAL", message)
            raise UserError(message) from error

    def _fingerprint(self):
        """Returns something that differs when a file has changed; while the folder cannot be read, it is None."""
        try:
            folders = [folder for export in self._found().values() for folder in tf.io.gfile.walk(export)]
            files = [os.path.join(folder, name) for folder, _, names in folders for name in names]
            stats = [(file, stat.length, stat.mtime_nsec) for file in files for stat in [tf.io.gfile.stat(file)]]
            # TensorFlow's times are whole seconds, in which a label can move twice.
            return stats, self._labels_path and read_bytes(self._labels_path, MOST_BYTES)
        except (UserError, Failure, tf.errors.OpError):
            return None


def _load(path):
    export = ServedExport(path)
    export.warm_up()
    return export


@contextlib.contextmanager
def watching(versions, seconds):
    """Context in which a thread calls `versions.watch`.

    The thread has ended after it: Python ends those that are left by an exception, which TensorFlow's C++ does not let
    through, so that a server which was asked to stop would abort.
    """
    stop = threading.Event()
    thread = threading.Thread(target=versions.watch, args=(seconds, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_LONGEST_END)
