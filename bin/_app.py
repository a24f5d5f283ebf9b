"""What every command shares: flags by absl, one-line errors, exit statuses.

A command is a module like this one (its docstring heads `--help`):

    from t2t_lite.bin import _app

    def define_flags(flags):
        _app.define_common_flags(flags)
        flags.DEFINE_path("export_dir", None, "Folder to write to.")
        _app.define_tf1_flags(flags)

    def check(flags):                       # optional: before the user's folder and TensorFlow are imported
        _app.require(flags, "output_dir")

    def run(flags):                         # the command; heavy imports stand in here. Returns None or a status
        print(flags.export_dir)

    def main(argv=None):
        return _app.main("t2t-exporter", define_flags, run, argv, check=check)

Exit statuses: 0 done, 1 something failed, 2 the user's mistake, 130 interrupted, 141 nobody reads the output.
"""

import contextlib
import functools
import logging
import os
import re
import sys
import textwrap

from absl import flags as absl_flags

from t2t_lite.data import file_errors
from t2t_lite.errors import Failure, UserError, nearest
from t2t_lite.quiet_import import import_tensorflow

_LOGGER = logging.getLogger("t2t_lite")
# A message may quote a file: control characters, halves of surrogate pairs, and what turns the direction of writing.
_NOT_FOR_TERMINALS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


class _PathParser(absl_flags.ArgumentParser):
    """A path; `~` is expanded, which the shell does not do in `--flag=~/folder`."""

    def parse(self, argument):
        return os.path.expanduser(file_errors.check_name(argument))

    def flag_type(self):
        return "path"


class _PathsParser(absl_flags.ListParser):
    """A comma list of paths; `~` is expanded in each."""

    def parse(self, argument):
        return [os.path.expanduser(file_errors.check_name(path)) for path in super().parse(argument)]


class Flags:
    """The flags of one command: absl's `DEFINE_…` functions on a set of their own, so that calls never meet.

    `DEFINE_string`, `DEFINE_integer`, `DEFINE_float`, `DEFINE_bool`, `DEFINE_enum` and `DEFINE_list` take what absl's
    take: (name, default, help), enum (name, default, values, help), numbers `lower_bound=` and `upper_bound=`.
    """

    def __init__(self):
        self.values = absl_flags.FlagValues()
        self.values.set_gnu_getopt(True)  # flags count after a stray word too, which is then reported
        self._no_effect, self._not_yet = {}, {}
        for kind in ("string", "integer", "float", "bool", "enum", "list"):
            define = functools.partial(getattr(absl_flags, f"DEFINE_{kind}"), flag_values=self.values)
            setattr(self, f"DEFINE_{kind}", define)

    def __contains__(self, name):
        return name in self.values

    def DEFINE_path(self, name, default, help):
        """Declares a path; `~` is expanded. None or "": not given."""
        absl_flags.DEFINE(_PathParser(), name, default, help, flag_values=self.values)

    def DEFINE_paths(self, name, default, help):
        """Declares a comma list of paths; `~` is expanded in each."""
        serializer = absl_flags.ListSerializer(",")
        absl_flags.DEFINE(_PathsParser(), name, default, help, flag_values=self.values, serializer=serializer)

    def no_effect(self, name, reason, is_bool=False):
        """Declares a flag of tensor2tensor that means nothing here: accepted, one line of warning, not in --help."""
        define = self.DEFINE_bool if is_bool else self.DEFINE_string
        define(name, None, reason)
        self._no_effect[name] = reason

    def has_effect(self, name):
        """Whether the flag is declared, and not by `no_effect`."""
        return name in self.values and name not in self._no_effect

    def not_yet(self, name, default, instead=""):
        """Declares a flag that is planned: any value but the default is an error. Not in --help.

        Args:
            name: of the flag.
            default: tensor2tensor's; its type (bool, int, float, str, None) is the flag's.
            instead: what to do until then, a full sentence.
        """
        kind = {bool: "bool", int: "integer", float: "float"}.get(type(default), "string")
        getattr(self, f"DEFINE_{kind}")(name, default, instead)
        self._not_yet[name] = instead

    def shown(self):
        """Returns the absl flags that --help lists, in the order they were declared."""
        return [self.values[n] for n in self.values if n not in self._no_effect and n not in self._not_yet]

    def parse(self, argv):
        """Parses the words after the program's name into `self.values`. Raises `UserError`."""
        try:
            stray = self.values(["", *map(self._with_underscores, argv)])[1:]
        except absl_flags.UnrecognizedFlagError as error:
            raise UserError(f"--{error.flagname}: unknown flag. {self._nearest(error.flagname)}") from None
        except absl_flags.Error as error:
            raise UserError(_without_python_words(str(error))) from None
        if stray:
            raise UserError(
                f"{stray[0]!r}: a word that belongs to no flag. Expected --name=value, or --name and --noname for "
                f"switches. {self._nearest(re.split('[= ]', stray[0])[0])}"
            )

    def check_and_warn(self):
        """Warns of flags without effect. Raises `UserError` for flags that are not there yet."""
        for name, instead in self._not_yet.items():
            if self.values[name].value != self.values[name].default:
                raise UserError(f"--{name}: not available yet. {instead}".strip())
        for name, reason in self._no_effect.items():
            if self.values[name].present:
                _LOGGER.warning(f"--{name} has no effect: {reason}.")

    def check_schemes(self):
        """Raises `UserError` for a path such as s3://bucket/file on a file system that TensorFlow does not have."""
        for flag in self.shown():
            if isinstance(flag.parser, _PathParser | _PathsParser) and flag.value:
                for path in flag.value.split(",") if isinstance(flag.value, str) else flag.value:
                    file_errors.check_scheme(path)

    def _with_underscores(self, word):
        """`--data-dir=a-b` -> `--data_dir=a-b`, where that is a flag; other words stay as they are."""
        dashes, name, rest = re.fullmatch(r"(-{0,2})([^=]*)(.*)", word, re.DOTALL).groups()
        known = name.replace("-", "_")
        is_flag = dashes and (known in self.values or known.removeprefix("no") in self.values)
        return f"{dashes}{known}{rest}" if is_flag else word

    def _nearest(self, word):
        name = "--" + word.lstrip("-").replace("-", "_")
        return f"{nearest(name, [f'--{flag.name}' for flag in self.shown()])} All are listed by --help.".lstrip()


def define_common_flags(flags):
    """Declares what the trainer, decoder and exporter share. None: not given."""
    flags.DEFINE_string("problem", None, "Name of the problem, such as translate_ende_phrasebook; _rev swaps sides.")
    flags.DEFINE_string("model", None, "Name of the model, such as transformer.")
    flags.DEFINE_string("hparams_set", None, "Name of the hyperparameter set, such as transformer_base.")
    flags.DEFINE_string("hparams", "", "Changes to the set: name=value,name=value.")
    flags.DEFINE_path("data_dir", None, "Folder of records and vocabulary, as t2t-datagen writes it.")
    flags.DEFINE_path("output_dir", None, "Folder of the run: checkpoints, hparams.json, logs.")
    flags.DEFINE_path("t2t_usr_dir", None, "Your own folder with an __init__.py, imported for what it registers.")
    flags.DEFINE_bool("registry_help", False, "Print every registered model, hyperparameter set and problem, and stop.")


_TPU = "TPUs are not supported"
_GRAPH = "it steered TensorFlow 1's graphs and sessions"
_SERVERS = "there are no parameter servers; workers are set up by TF_CONFIG"
_CLOUD = "there is no launcher for Google Cloud ML Engine"
_TF1_SWITCHES = {
    "cloud_mlengine": _CLOUD,
    "disable_grappler_optimizations": _GRAPH,
    "enable_graph_rewriter": "TensorFlow 2 rewrites its graphs by itself",
    "log_device_placement": "the log names the devices; in Python there is tf.debugging.set_log_device_placement(True)",
    "optionally_use_dist_strat": "--worker_gpu=N always replicates by MirroredStrategy",
    "sync": _SERVERS,
    "tfdbg": "a step that is not finite is skipped and its batches kept; in Python there is "
    "tf.debugging.enable_check_numerics()",
    "use_guarantee_const_getter": _TPU,
    "use_tpu": _TPU,
    "use_tpu_estimator": _TPU,
}
_TF1_VALUES = {
    "cloud_mlengine_master_type": _CLOUD,
    "cloud_tpu_name": _TPU,
    "export_saved_model_api_version": _TPU,
    "gpu_order": "CUDA_VISIBLE_DEVICES orders GPUs",
    "iterations_per_loop": _TPU,
    "job_dir": _CLOUD,
    "master": _SERVERS,
    "ps_gpu": _SERVERS,
    "ps_job": _SERVERS,
    "ps_replicas": _SERVERS,
    "std_server_protocol": _SERVERS,
    "tpu_infeed_sleep_secs": _TPU,
    "tpu_job_name": _TPU,
    "tpu_num_shards": _TPU,
    "worker_id": _SERVERS,
    "worker_job": _SERVERS,
    "worker_replicas": _SERVERS,
    "xla_jit_level": _GRAPH,
}


def define_tf1_flags(flags):
    """Declares tensor2tensor's TPU and TensorFlow 1 flags: accepted with a warning. Call it last."""
    for names, is_bool in ((_TF1_SWITCHES, True), (_TF1_VALUES, False)):
        for name, reason in names.items():
            if name not in flags:
                flags.no_effect(name, reason, is_bool)


def require(flags, *names):
    """Raises `UserError` when one of the flags has no value; the message says what each is for."""
    missing = [f"--{name} ({flags[name].help.rstrip('.')})" for name in names if flags[name].value in (None, "", [])]
    if missing:
        *others, last = missing
        raise UserError(f"missing {', '.join(others)}{' and ' if others else ''}{last}.")


def main(command, define_flags, run, argv=None, *, check=None, tensorflow=True):
    """Runs a command and returns its exit status; safe to call many times in one process.

    Args:
        command: its name, which begins its error messages.
        define_flags: function of `Flags` that declares them.
        run: function of the parsed absl `FlagValues`; returns None or an exit status.
        argv: the words after the program's name; None: the process's own.
        check: function of the parsed values, called before anything heavy is imported; raises `UserError`.
        tensorflow: whether `run` uses TensorFlow, which is then imported here, quietly.
    """
    if getattr(sys.stdout, "encoding", "utf-8").lower() != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")  # translations are UTF-8 whatever the locale
    argv = sys.argv[1:] if argv is None else list(argv)
    with _log_to_stderr(command):
        try:
            status = _run(command, define_flags, run, argv, check, tensorflow)
            sys.stdout.flush()
            return status or 0
        except BrokenPipeError:
            # Point stdout elsewhere: the interpreter flushes it at exit and would complain there.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + 13
        except KeyboardInterrupt:
            print(f"\n{command}: interrupted", file=sys.stderr)
            return 128 + 2
        except Exception as error:
            status = report(command, error)
            if status is None:
                raise
            return status


def report(command, error):
    """Prints an error as one line on stderr; returns the exit status, or None for a bug, which is not printed."""
    status, message = _explain(error)
    if message is None:
        return None
    print(f"{command}: error: {_NOT_FOR_TERMINALS.sub(_escaped, ' '.join(message.splitlines()))}", file=sys.stderr)
    return status


def _escaped(found):
    return found[0].encode("unicode_escape").decode()


def _run(command, define_flags, run, argv, check, tensorflow):
    flags = Flags()
    define_flags(flags)
    if {"--help", "-h", "-help", "--helpfull", "--helpshort"} & set(argv):
        print(_help(command, sys.modules[run.__module__].__doc__ or "", flags.shown()))
        return 0
    flags.parse(argv)
    flags.check_and_warn()
    values = flags.values
    registry_help = "registry_help" in values and values.registry_help
    if check and not registry_help:
        check(values)
    if tensorflow:
        import_tensorflow()
    imports_folder = flags.has_effect("t2t_usr_dir")
    if imports_folder or registry_help:
        from t2t_lite import registry

        registry.import_usr_dir(values.t2t_usr_dir if imports_folder else None)
        if registry_help:
            print(registry.help_string())
            return 0
    if tensorflow:
        flags.check_schemes()  # the user's folder may have added one
    return run(values)


def _explain(error):
    """Returns (exit status, message), or (1, None) for an error that is a bug and keeps its traceback."""
    kind, text = type(error).__name__, str(error)
    if isinstance(error, UserError):
        return 2, text
    if isinstance(error, Failure):
        return 1, text
    if isinstance(error, MemoryError) or (kind == "ResourceExhaustedError" and "OOM" in text):
        return 1, "out of memory. Use a smaller batch_size, and a smaller max_length where sentences are long."
    if found := file_errors.explain(error):
        return (2 if isinstance(found, UserError) else 1), str(found)
    return 1, None


def _without_python_words(message):
    """absl's message about a flag's value, without what only Python programmers understand."""
    message = message.removeprefix("flag ")
    message = re.sub(r"invalid literal for int\(\) with base 10: .*", "expected a whole number.", message)
    message = re.sub(r"could not convert string to float: .*", "expected a number.", message)
    message = re.sub(r"\S+ is not (an? [a-z ]*|a number .*)$", r"expected \1.", message)
    message = re.sub(r"\('Non-boolean argument to boolean flag.*", "expected true or false.", message)
    message = re.sub(
        r"value should be one of <(.*)>$", lambda m: f"expected one of {m[1].replace('|', ', ')}.", message
    )
    return re.sub(r"^Missing value for flag (--\w+)$", r"\1: its value is missing. Expected \1=value.", message)


def _help(command, description, shown):
    """Returns the text of --help: what the command does, then its flags with their defaults."""
    lines = [f"{command}: {description.strip()}", "", "Flags (dashes and underscores are alike):"]
    for flag in shown:
        lines.append(f"  --[no]{flag.name}" if flag.boolean else f"  --{flag.name}={_value_words(flag)}")
        text = re.sub(r"^<[^>]*>: ", "", flag.help)  # absl puts an enum's values there; they stand after the name
        default = "" if flag.default in (None, "", []) else f" Default: {flag.default_as_str.strip(chr(39))}."
        lines += textwrap.wrap(text + default, 112, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def _value_words(flag):
    if values := getattr(flag.parser, "enum_values", None):
        return "|".join(values)
    kinds = {"path": "PATH", "int": "NUMBER", "float": "NUMBER", "comma separated list of strings": "A,B,..."}
    return kinds.get(flag.flag_type(), "TEXT")


class _Formatter(logging.Formatter):
    """Plain lines; warnings and errors begin with the command's name, as its own messages do."""

    def __init__(self, command):
        super().__init__()
        self._command = command

    def format(self, record):
        text = super().format(record)
        return f"{self._command}: {record.levelname.lower()}: {text}" if record.levelno >= logging.WARNING else text


@contextlib.contextmanager
def _log_to_stderr(command):
    """Shows what the library logs (logger `t2t_lite`, from INFO on) on stderr while the command runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(command))
    level, propagate = _LOGGER.level, _LOGGER.propagate
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.propagate = (
        False  # libraries that call logging.info() give the root logger a handler: lines would come twice
    )
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(level)
        _LOGGER.propagate = propagate
