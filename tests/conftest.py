"""What all tests share: a quiet backend on the CPU; of TensorFlow, eight logical devices for tests of distribution."""

import atexit
import collections
import fcntl
import functools
import gc
import logging
import os
import resource
import sys
import time
import typing

import pytest

from tests import faults

# Read when TensorFlow is imported; subprocesses inherit them.
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # as t2t_lite sets it, whichever of the two is imported first
# Compiles much here, and computes little; each backend stops at flags that it does not know.
_OF_BACKEND = {
    "tensorflow": "--xla_cpu_use_fusion_emitters=false",  # the older ones compile in two thirds of the time
    "jax": "--xla_force_host_platform_device_count=2",  # it splits the CPU
}
os.environ.setdefault(
    "XLA_FLAGS", f"--xla_backend_optimization_level=0 {_OF_BACKEND.get(os.environ['KERAS_BACKEND'], '')}"
)

if sys.version_info < (3, 12):  # which keeps them: TensorFlow asks for them with each tensor that is an argument
    typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)

LOGICAL_CPUS = 8
_LAST_REPORT = [0.0]  # CPU time of this process at the last report of a test
_WORTH_SAYING = 60  # seconds; less than that is nobody's trouble
_LONGEST = 8  # CPU seconds of a case that is not marked long, on a machine as fast as the next line says
_VALUES_OF_A_SWITCH = 3  # at most; longer lists are tables of kinds
_SWITCHED_OFF = {}  # (file, test): values of its switches that only long cases have
_COLLECTION = 12  # CPU seconds to import all tests there; speed differs by half from hour to hour, on one machine, too
_WHOLE = 5000  # tests; fewer are a part of them that somebody has chosen
_SLOWNESS = [1.0]  # of this machine while tests are collected, 1 or more
_LOOP = [0.0]  # CPU seconds of `_loop_seconds` at that time


def _loop_seconds():
    """Returns the CPU seconds of some work, about a tenth: more where a neighbour has slowed the machine down since."""
    begun = time.process_time()
    sum(range(5_000_000))
    return time.process_time() - begun


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Keeps the garbage collector from what is imported, which stays: it would search that again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        # Of a few tests, the first ones pay for the imports of all: their time is not limited.
        is_whole = session.testscollected >= _WHOLE
        _SLOWNESS[0] = max(1.0, time.process_time() / _COLLECTION) if is_whole else float("inf")
        _LOOP[0] = min(_loop_seconds() for _ in range(3))
        gc.freeze()
        gc.set_threshold(100_000)  # of 700: a traced function makes many thousands of objects
        gc.enable()


def pytest_collection_finish():
    """Splits the CPU into logical devices, which is only possible before TensorFlow runs its first operation.

    Nor are graphs optimized in this process: that takes longer than all that is computed here by the optimized ones.
    The commands that tests start in processes of their own do optimize theirs, as for users.

    Where no collected test module has imported TensorFlow it is not imported here either: that takes ten seconds.
    """
    if "tensorflow" in sys.modules and os.environ["KERAS_BACKEND"] == "tensorflow":
        import tensorflow as tf

        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * LOGICAL_CPUS)
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        tf.config.threading.set_intra_op_parallelism_threads(1)  # a second one would mostly wait, which takes time too
        _leave_out_texts_of_errors()


def _leave_out_texts_of_errors():
    """Keeps TensorFlow from work for texts that errors alone have: the names of variables, the lines of operations.

    It optimizes a function for each new name of a variable, a thousandth of a second, and follows the stack at each
    operation of a graph.
    """
    from tensorflow.python.ops import gen_resource_variable_ops
    from tensorflow.python.util import tf_stack

    make_handle, stack = gen_resource_variable_ops.var_handle_op, tf_stack.extract_stack()
    gen_resource_variable_ops.var_handle_op = lambda **options: make_handle(**{**options, "debug_name": ""})
    tf_stack.extract_stack = lambda stacklevel=1: stack


def _switches_without_a_short_case(items):
    """Returns {(file, test): what `few` leaves out}: values of a switch that no short case of the file has.

    A switch is an argument of two or three values that are neither numbers nor lists. `few(…, instead="test_of_it")`
    names another test of the file that has them.
    """
    short, every, left_out = set(), collections.defaultdict(set), {}
    tests = {(item.path, item.originalname) for item in items if not item.get_closest_marker("long")}
    for item in items:
        few = item.get_closest_marker("few")
        for name, value in item.callspec.params.items() if hasattr(item, "callspec") else ():
            if isinstance(value, list | float | int) and not isinstance(value, bool):
                continue
            if not item.get_closest_marker("long"):
                short.add((item.path, name, repr(value)))
            if few and (item.path, few.kwargs.get("instead")) not in tests:
                every[item.path, item.originalname, name].add(repr(value))
    for (path, test, name), values in every.items():
        left = sorted(value for value in values if (path, name, value) not in short)
        if left and len(values) <= _VALUES_OF_A_SWITCH:
            left_out.setdefault((path, test), []).append(f"{name}={' and '.join(left)}")
    return left_out


@pytest.hookimpl(tryfirst=True)  # before cases are left out by their marks
def pytest_collection_modifyitems(config, items):
    """Marks the cases that `few` leaves to make test-all, then sorts files: the dearest first, to end together.

    These are files of whole runs, and those with slow tests.
    """
    for item in items:
        if item.get_closest_marker("whole") and (without := os.environ.get("T2T_WITHOUT")):
            item.add_marker(pytest.mark.skip(reason=f"without extras: {without}"))
        few = item.get_closest_marker("few")
        if few and not set(few.args) & {item.callspec.id, *item.callspec.id.split("-")}:
            item.add_marker(pytest.mark.long)
    # Of a file's tests, all are here. Without extras, a table of values may be as short as a switch.
    if not any("::" in argument for argument in config.args) and not os.environ.get("T2T_WITHOUT"):
        _SWITCHED_OFF.update(_switches_without_a_short_case(items))
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("long")}
    runs = ("tests/training/", "tests/integration/")
    items.sort(key=lambda item: (item.path not in slow, not item.nodeid.startswith(runs)))


def pytest_runtest_setup(item):
    """Fails a test whose `few` leaves a branch to make test-all alone."""
    if left := _SWITCHED_OFF.get((item.path, getattr(item, "originalname", None))):
        pytest.fail(f"no short case has {', '.join(left)}: keep one, or few(…, instead='test_of_it')", pytrace=False)


def _cpu_seconds():
    """Returns the CPU time of this process, and of the processes that it has started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Notes the CPU time since the report before: of set-up, test or tear-down. A case that takes too much fails."""
    report, now = (yield), _cpu_seconds()
    seconds, _LAST_REPORT[0] = now - _LAST_REPORT[0], now
    report.user_properties.append(("cpu_seconds", seconds))
    longest = _LONGEST * _SLOWNESS[0] if os.environ["KERAS_BACKEND"] == "tensorflow" else float("inf")
    is_short = report.when == "call" and report.passed and not item.get_closest_marker("long")
    if is_short and seconds > longest:
        longest *= max(1.0, _loop_seconds() / _LOOP[0])
    if is_short and seconds > longest:
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} took {seconds:.1f} s of CPU time, a case of make test at most {longest:.0f}. "
            "Make it smaller, or mark it long and leave a small test of what it promises."
        )
    return report


def pytest_sessionfinish():
    """Ends a process of several at once: taking thousands of graphs apart would take it ten seconds and more."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        atexit.register(os._exit, 0)


def pytest_runtest_logstart():
    """What is between two tests is neither's."""
    _LAST_REPORT[0] = _cpu_seconds()


def pytest_terminal_summary(terminalreporter):
    """Says which files took the most CPU time; a fixture that several share counts where it was made."""
    files, every = collections.Counter(), {}
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        for name, seconds in getattr(report, "user_properties", ()):
            if name == "cpu_seconds":
                files[report.nodeid.partition("::")[0]] += seconds
                every[report.nodeid, report.when] = seconds
    if path := os.environ.get("T2T_TEST_SECONDS"):
        with open(path, "w") as file:
            file.writelines(f"{seconds:.3f}\t{when}\t{node}\n" for (node, when), seconds in every.items())
    if sum(files.values()) > _WORTH_SAYING:
        terminalreporter.section(f"CPU time: {sum(files.values()):,.0f} s, of which the ten dearest files took")
        for path, seconds in files.most_common(10):
            terminalreporter.write_line(f"{seconds:7.1f} s  {path}")


def pytest_make_parametrize_id(val):
    """Names gzip's bytes by their kind: they hold the time, so two processes would collect tests of different names."""
    return "gzip" if isinstance(val, bytes) and val.startswith(b"\x1f\x8b") else None


@pytest.fixture(autouse=True)
def _random_numbers_are_the_same_each_time():
    """Gives each test the same weights in every run, alone or after others.

    Given a seed, TensorFlow forgets all kernels of operations, for some of `tf.random` hold one. Making them again took
    a tenth of the time of all tests; so they are kept here, and forgotten after each module.
    """
    if "keras" in sys.modules:
        import keras

        with pytest.MonkeyPatch.context() as patch:
            if context := sys.modules.get("tensorflow.python.eager.context"):
                patch.setattr(context.pywrap_tfe, "TFE_ContextClearCaches", lambda handle: None)
            keras.utils.set_random_seed(0)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Returns a function of a name and of what fills a folder -> that folder, which all processes of a run share."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder

    def path_of(name, fill):
        path, done = shared / name, shared / f"{name}.done"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                path.mkdir()
                fill(path)
                done.touch()
        return path

    return path_of


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves, which the module `time` reads until the test ends.

    It is set by `monkeypatch`, so that it and what a test sets on top of it are undone in the right order.
    """
    clock = faults.Clock()
    clock.install(monkeypatch)
    return clock


REAL_TIME = {name: getattr(time, name) for name in ("time", "sleep", "monotonic", "perf_counter")}


@pytest.fixture(scope="module", autouse=True)
def _the_next_module_finds_time_and_log_as_they_were():
    """Fails a module whose tests leave another clock or log level: what fails then is a test of a later module."""
    yield
    assert {name: getattr(time, name) for name in REAL_TIME} == REAL_TIME, "the module `time` is still patched"
    logger = logging.getLogger("t2t_lite")
    left, logger.level = logger.level, logging.NOTSET
    assert left == logging.NOTSET, f"the level of the logger t2t_lite is still {left}"


@pytest.fixture
def eager():
    """Functions of TensorFlow run operation by operation: of a few short steps, tracing them would take longer."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module", autouse=True)
def _what_is_left_is_not_searched():
    """Frees what a module's tests leave, and keeps the garbage collector from the rest: caches that stay.

    Keras collects garbage in each layer that it quantizes, which takes a second where the whole heap is searched.
    TensorFlow registers what `tf.custom_gradient` makes in a graph, with this graph, for good: gigabytes in all.
    """
    yield
    if "tensorflow" in sys.modules:
        from tensorflow.python.eager import context
        from tensorflow.python.framework import ops

        context.context().clear_kernel_cache()
        gradients = getattr(ops.gradient_registry, "_registry", {})  # its own name for them; without it they stay
        for name in [name for name in gradients if name.startswith("CustomGradient-")]:
            del gradients[name]
        gc.collect()
        gc.freeze()
