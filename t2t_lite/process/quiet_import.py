"""Imports TensorFlow in a command, without start-up messages and without packages that are not needed."""

import contextlib
import functools
import gc
import os
import sys
import threading

from t2t_lite.process.lazy import ImportHook

# TensorFlow imports Keras, which imports these packages if they are installed, for keras.wrappers, image galleries and
# a weight editor for notebooks. They take a third of the whole import time.
_UNUSED = "IPython", "matplotlib", "sklearn"
_UNUSED_BY_NLTK = "scipy", "sklearn"  # used by nltk's classifiers and word associations, but not by its trees


@functools.cache
def import_when_used():
    """Delays `import tensorflow` until TensorFlow is used, and silences it unless TF_CPP_MIN_LOG_LEVEL=0.

    The import takes seconds, and the errors that a command finds before any computation should be reported immediately.
    Call this function only in a command's own process, because some packages that TensorFlow, Keras and nltk would
    import are hidden. TensorFlow 2.21 respects TF_CPP_MIN_LOG_LEVEL only after it has been imported. Before that, its
    C++ code writes to file descriptor 2.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.meta_path.insert(0, ImportHook("keras", _import_quietly))
    sys.meta_path.insert(0, ImportHook("tensorflow", _import_quietly, when_used=True))
    sys.meta_path.insert(0, ImportHook("nltk", _import_trees))


def import_tensorflow():
    """Imports TensorFlow now, without its start-up messages, as `import_when_used` does later."""
    import_when_used()
    import tensorflow as tf

    tf.config  # noqa: B018  (uses it)


def _import_quietly(exec_module, module):
    """Imports TensorFlow or Keras without messages (each package imports the other)."""
    with _no_stderr(), _no_garbage_collection(), _hidden(_UNUSED):
        exec_module(module)
        if module.__name__ == "tensorflow":
            module.config.list_physical_devices()  # now, because it logs a CUDA failure if there is no GPU


def _import_trees(exec_module, module):
    with _hidden(_UNUSED_BY_NLTK):
        exec_module(module)


def start_worker(import_paths):
    """Initializes a worker process of a pool, and makes it exit when its parent exits for any reason.

    A spawned process first imports the module of this function, so the module must not import anything that prints
    messages. `import_paths` is a list of folders, str, with modules that tasks may refer to, such as a user's encoder.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.path += import_paths
    import_tensorflow()


def _end_with_parent():
    import multiprocessing.connection  # not at the top, because commands import this module even to print their help

    # If the parent is killed, other workers still hold its pipes open. Without this thread, all workers would wait for
    # tasks forever.
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


@contextlib.contextmanager
def _no_garbage_collection():
    # Otherwise Python would repeatedly search the growing heap for garbage, which takes an eighth of the import time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _hidden(packages):
    """Context manager in which some packages cannot be imported."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # None makes an import raise ImportError
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


@contextlib.contextmanager
def _no_stderr():
    if os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0":
        yield
        return
    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)
