"""Keeps the newest version of an export loaded for a server.

<export_dir>/1/saved_model.pb, variables/ …
<export_dir>/2/…
"""

import contextlib
import gc
import os
import re
import threading
import weakref

import tensorflow as tf

from t2t_lite.errors import LOGGER, Failure, UserError, first_line
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.files import exists
from t2t_lite.files.file_errors import translated
from t2t_lite.files.file_system import list_names, status, walk

_NAME = re.compile(r"\d{1,18}")
_LONGEST_END = 60.0  # maximum time in seconds for which loading a version may delay the shutdown


class ModelVersions:
    """Loads the newest version of an export and provides it to requests. Thread-safe, except for `refresh`.

    A replaced version receives no new requests. It is freed when its last request has been answered, because then
    nothing refers to it any more.

    Args:
        name: str, the model's name in messages.
        folder: str, the folder of the numbered exports (`export_dir`).
        load: function that takes a path, and returns a ServedExport that is ready for requests or raises `UserError`.
    """

    def __init__(self, name, folder, load):
        self.name, self.folder, self._load = name, folder, load
        self._served = None  # (version, ServedExport)
        self._states = {}  # {version: (state, gRPC code, message)}
        self._freed = []

    def refresh(self):
        """Loads the newest version unless it is already loaded, and drops the previous version.

        Raises:
            UserError: the folder has no version, or the newest version cannot be loaded. The previous version is still
                served, or if there is none, the newest version that can be loaded.
        """
        paths = self._paths()
        if not paths:
            is_version = exists(os.path.join(self.folder, "saved_model.pb"))
            parent = os.path.dirname(self.folder.rstrip("/")) or "."
            advice = f" This is an export itself: use the folder that contains it, {parent}." if is_version else ""
            raise UserError(
                f"{self.folder}: contains no exports. Expected numbered folders 1, 2, … from t2t-exporter.{advice}"
            )
        newest, *older = sorted(paths, reverse=True)
        try:
            self._serve(newest, paths[newest])
        except UserError:
            while self._served is None and older:
                with contextlib.suppress(UserError):
                    number = older.pop(0)
                    self._serve(number, paths[number])
            raise

    def watch(self, seconds, stop):
        """Calls `refresh` whenever a file of the exports has changed, until the event `stop` is set."""
        fingerprint = ()  # differs from every fingerprint, because files may have changed since `refresh`
        while not stop.wait(seconds):
            if self._freed:  # reference cycles keep a SavedModel in memory until collected
                self._freed.clear()
                gc.collect()
            try:
                if (current := self._fingerprint()) == fingerprint:
                    continue
                fingerprint, version = current, self._served[0]
                self.refresh()
            except (UserError, Failure) as error:
                # A failure may be temporary, so loading is tried again even if no file changes.
                fingerprint = None if isinstance(error, Failure) else fingerprint
                LOGGER.warning(f"{error} {self.name}, version {self._served[0]}, is still served.")
            else:
                if version != self._served[0]:
                    LOGGER.info(f"Now serving {self}.")

    def find(self, version=None):
        """Returns the loaded (version, ServedExport). Raises `Refusal` if the requested version is not loaded."""
        served = self._served
        if version not in (None, served[0]):
            raise Refusal(f"Servable not found for request: Specific({self.name}, {version})", "NOT_FOUND")
        return served

    def states(self, version=None):
        """Returns [(version, state, gRPC code, message)], newest first. Raises `Refusal` for an unknown version."""
        states = dict(self._states)
        if version is not None and version not in states:
            raise Refusal(f"Could not find version {version} of model {self.name}", "NOT_FOUND")
        return [(number, *states[number]) for number in sorted(states, reverse=True) if version in (None, number)]

    def is_available(self):
        """Returns whether a version is loaded."""
        return self._served is not None

    def __str__(self):
        return f"{self.name}, version {self._served[0]}"

    def _end(self, number):
        if self._states[number][0] == "UNLOADING":  # otherwise, the version was loaded again, or reloading it failed
            self._states[number] = ("END", "OK", "")
        self._freed.append(number)

    def _paths(self):
        """Returns {version: path} of the exports in the folder."""
        with translated(self.folder):
            names = list_names(self.folder)
            paths = {int(name): os.path.join(self.folder, name) for name in names if _NAME.fullmatch(name)}
            return {number: path for number, path in paths.items() if exists(f"{path}/saved_model.pb")}

    def _serve(self, number, path):
        """Loads a version, unless it is served, and serves it."""
        retired = self._served
        if retired and retired[0] == number:
            return
        export = self._loaded(number, path)
        if retired:
            self._states[retired[0]] = ("UNLOADING", "OK", "")
            weakref.finalize(retired[1], self._end, retired[0])
        self._states[number] = ("AVAILABLE", "OK", "")
        self._served = number, export

    def _loaded(self, number, path):
        self._states[number] = ("LOADING", "OK", "")
        LOGGER.info(f"Loading {path}; this may take half a minute.")
        try:
            return self._load(path)
        except UserError as error:
            self._states[number] = ("END", "INTERNAL", str(error))
            raise
        except Exception as error:  # damaged files raise many kinds of errors
            message = f"{path}: cannot be loaded: {first_line(error)}. Export the model again, or remove this folder."
            self._states[number] = ("END", "INTERNAL", message)
            raise UserError(message) from error

    def _fingerprint(self):
        """Returns a value that changes whenever a file changes, or None while the folder cannot be read."""
        try:
            folders = [folder for export in self._paths().values() for folder in walk(export)]
            files = [os.path.join(folder, name) for folder, _, names in folders for name in names]
            return [(file, *status(file)) for file in files]
        except (UserError, Failure, OSError, tf.errors.OpError):
            return None


def load_export(path):
    """Returns the ServedExport of a path; it is ready for requests."""
    from t2t_lite.extras.serving.served_export import ServedExport  # imports TensorFlow

    export = ServedExport(path)
    export.warm_up()
    return export


def load_with_generator(path):
    """Like `load_export`, but the ServedExport also has a `generator`. Raises `UserError`: see `ServedGenerator`."""
    from t2t_lite.extras.serving.served_generator import ServedGenerator  # imports Keras

    generator = ServedGenerator(path)
    export = load_export(path)
    export.generator = generator
    return export


@contextlib.contextmanager
def watching(versions, seconds):
    """Context manager that runs `versions.watch` in a thread.

    The thread ends with the context. Otherwise Python would end the thread at exit with an exception that TensorFlow's
    C++ code does not pass on, so that the server would abort instead of stopping.
    """
    stop = threading.Event()
    thread = threading.Thread(target=versions.watch, args=(seconds, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_LONGEST_END)
