"""Imports TensorFlow in a command's process, without its start-up messages and without packages it does not need."""

import contextlib
import functools
import gc
import os
import sys
import threading

from t2t_lite.process.lazy import ImportHook

# TensorFlow imports Keras, and that these where they are installed: for keras.wrappers, for galleries of images and for
# editing weights in a notebook. It takes a third of the time of the whole import.
_UNUSED = "IPython", "matplotlib", "sklearn"
_UNUSED_BY_NLTK = "scipy", "sklearn"  # for its classifiers and associations of words; trees need neither


@functools.cache
def import_when_used():
    """Lets `import tensorflow` wait until TensorFlow is used, and be quiet then, unless TF_CPP_MIN_LOG_LEVEL=0.

    The import takes seconds, and errors found before any computation should be reported at once. Call this only in the
    process of a command, since some packages that TensorFlow, Keras and nltk import are left out.

    TensorFlow 2.21 obeys that variable only after its import: until then its C++ code writes to file descriptor 2.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.meta_path.insert(0, ImportHook("keras", _import_quietly))
    sys.meta_path.insert(0, ImportHook("tensorflow", _import_quietly, when_used=True))
    sys.meta_path.insert(0, ImportHook("nltk", _import_trees))


def import_tensorflow():
    """Imports TensorFlow now, as quietly as `import_when_used`."""
    import_when_used()
    import tensorflow as tf

    tf.config  # noqa: B018  (uses it)


def _import_quietly(exec_module, module):
    """Imports TensorFlow, or Keras, which imports TensorFlow, or is imported by it."""
    with _no_stderr(), _no_garbage_collection(), _hidden(_UNUSED):
        exec_module(module)
        if module.__name__ == "tensorflow":
            module.config.list_physical_devices()  # on a machine without a GPU this logs a failure of CUDA


def _import_trees(exec_module, module):
    with _hidden(_UNUSED_BY_NLTK):
        exec_module(module)


def start_worker():
    """Prepares a process of a pool, and makes it exit when its parent exits, however that happens.

    A spawned process first imports the module of this function, which therefore imports nothing that is not quiet.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import_tensorflow()


def _end_with_parent():
    import multiprocessing.connection  # in here, since commands import this module only to print their help, too

    # When a parent is killed, other workers still hold its pipes open: without this, all would wait for tasks forever.
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


@contextlib.contextmanager
def _no_garbage_collection():
    # Otherwise the growing heap of modules is searched again and again: an eighth of the time that the import takes.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _hidden(packages):
    """Context in which these packages cannot be imported."""
    hidden = [name for name in packages if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # None in here is an ImportError
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
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
