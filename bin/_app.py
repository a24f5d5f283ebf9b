"""Runs every command: one-line errors, exit statuses, standard streams, and advice for unknown flags.

A command is a module like this example; its docstring is the first part of `--help`:

    from t2t_lite.bin import _app
    from t2t_lite.cli.commands import require

    def define_flags(flags):
        _app.define_common_flags(flags)
        flags.DEFINE_path("export_dir", None, "Folder to write to.")
        _app.define_tf1_flags(flags)

    def check(flags):                       # optional; called before the user's folder is imported
        require(flags, "output_dir")

    def run(flags):                         # the command; returns None or an exit status. Check names and
                                            # files first, before importing Keras or modules that import it
        print(flags.export_dir)

    main = _app.command("t2t-exporter", define_flags, run, check)

Exit statuses: 0 for success, 1 for a failure, 2 for a mistake by the user, 130 if the command was interrupted, and 141
if the reader of stdout has closed it.
"""

import contextlib
import os
import sys
import textwrap

from absl import flags as absl_flags

from t2t_lite.cli import commands, console
from t2t_lite.cli.commands import define_all, description
from t2t_lite.cli.flags import Flags
from t2t_lite.errors import LOGGER, Failure, UserError, nearest, printable
from t2t_lite.files import PACKERS, file_errors, is_remote
from t2t_lite.process.backend import choose_tensorflow
from t2t_lite.process.quiet_import import import_when_used
from t2t_lite.settings import tensor2tensor_names


def define_common_flags(flags):
    """Declares the flags that the trainer, decoder and exporter share. A flag that is not given is None."""
    flags.DEFINE_string(
        "problem",
        None,
        "Name of the problem, such as translate_ende_phrasebook; the suffix _rev swaps source and target.",
    )
    flags.DEFINE_string(
        "model",
        None,
        "Name of the model. Default: the run's model, or the model of the hyperparameter set or the task.",
    )
    flags.DEFINE_string("hparams_set", None, "Name of the hyperparameter set, such as transformer_base.")
    flags.DEFINE_string("hparams", "", "Changes to the set: name=value,name=value.")
    flags.DEFINE_path("data_dir", None, "Folder of records and vocabulary, written by t2t-datagen.")
    flags.DEFINE_path("output_dir", None, "Folder of the run: checkpoints, hparams.json, logs.")
    define_usr_dir_flag(flags)
    flags.DEFINE_bool("registry_help", False, "Print every registered model, hyperparameter set and problem, and stop.")


def define_usr_dir_flag(flags):
    """Declares --t2t_usr_dir."""
    flags.DEFINE_path(
        "t2t_usr_dir",
        None,
        "Your own folder with an __init__.py, or a package, that registers problems, models or hyperparameter sets.",
    )


def define_tf1_flags(flags):
    """Declares tensor2tensor's TPU and TensorFlow 1 flags, accepted with a warning. Call it last."""
    for names, is_bool in ((tensor2tensor_names.TF1_SWITCHES, True), (tensor2tensor_names.TF1_VALUES, False)):
        for name, reason in names.items():
            if name not in flags:
                flags.no_effect(name, reason, is_bool)


def refuse_packed(flags, *names):
    """Raises `UserError` if a flag names an output file whose extension is that of a compressed file."""
    for name in names:
        path = flags[name].value or ""
        if program := PACKERS.get(os.path.splitext(path)[1].lower()):
            raise UserError(
                f"--{name}={path}: outputs are plain text, but a file of this name is expected to be compressed. To "
                f"compress the output, type --{name}=- | {program} > {path}"
            )


def main(command, define_flags, run, argv=None, *, check=None, tensorflow=True):
    """Runs a command and returns its exit status. It may be called many times in one process.

    Args:
        command: the command's name, with which its error messages begin.
        define_flags: function of `Flags` that declares the command's flags.
        run: function of the parsed absl `FlagValues`; returns None or an exit status.
        argv: the words after the program's name, or None to use the arguments of the process.
        check: function of the parsed values that is called before heavy imports and raises `UserError` for mistakes.
        tensorflow: whether `run` uses Keras, whose backend is then set to TensorFlow. TensorFlow itself is only
            imported when it is first used, with its log messages suppressed.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    with console.standard_streams() as lacking, console.log_to_stderr(command):
        try:
            if "stdout" in lacking:
                LOGGER.warning("standard output is closed, so the command's output is lost.")
            status = _run(command, define_flags, run, argv, check, tensorflow)
            sys.stdout.flush()
            return status or 0
        except BrokenPipeError:
            # Redirect stdout to /dev/null, because the interpreter flushes stdout at exit and would report an error.
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


def command(name, define_flags, run, check=None, *, tensorflow=True):
    """Returns a function of `argv` that calls `main` with these arguments."""
    return lambda argv=None: main(name, define_flags, run, argv, check=check, tensorflow=tensorflow)


def require_files(flags, *names):
    """Raises `UserError` if one of the flags names a local file that does not exist."""
    for name in names:
        path = flags[name].value
        if path and not is_remote(path) and not os.path.exists(path):
            raise UserError(f"--{name}={path}: no such file. Check the path.")


def refuse_two_stdins(*paths):
    """Raises `UserError` if several of the input paths, which may be None, are "-", standard input."""
    if paths.count("-") > 1:
        raise UserError("standard input (-) can be read only once, but several flags name it.")


def require_folders(flags, *names):
    """Raises `UserError` if one of the flags names a local output file whose folder does not exist."""
    for name in names:
        path = flags[name].value
        if path and path != "-" and not is_remote(path):
            with file_errors.translated(path, "write"):
                os.stat(os.path.dirname(path) or ".")


def report(command, error):
    """Prints an error as one line on stderr and returns the exit status. For a bug, only returns None."""
    out_of_memory = type(error).__name__ == "ResourceExhaustedError" and "OOM" in str(error)
    if isinstance(error, MemoryError) or out_of_memory:
        error = Failure("out of memory. Use a smaller batch_size, or a smaller max_length if sentences are long.")
    elif not isinstance(error, UserError | Failure):
        error = file_errors.explain(error)
    if error is None:
        return None
    print(f"{console.clear_line()}{command}: error: {printable(str(error))}", file=sys.stderr)
    return 2 if isinstance(error, UserError) else 1


def _run(command, define_flags, run, argv, check, tensorflow):
    flags = Flags(answer)
    define_all(command, define_flags, flags)
    if {"--help", "-h", "-help", "--helpfull", "--helpshort"} & set(argv):
        print(_help(command, description(command, sys.modules[run.__module__].__doc__), flags.shown()))
        return 0
    flags.parse(argv)
    flags.warn_without_effect(LOGGER)
    values = flags.values
    registry_help = "registry_help" in values and values.registry_help
    if check and not registry_help:
        check(values)
    import_when_used()
    if tensorflow and (other := choose_tensorflow()):
        LOGGER.info(f"{other} has no effect: {command} runs on TensorFlow.")
    imports_folder = flags.has_effect("t2t_usr_dir")
    if imports_folder or registry_help:
        from t2t_lite import registry

        absl_flags.FLAGS.mark_as_parsed()  # flags that the user's folder declares have their defaults
        registry.import_usr_dir(values.t2t_usr_dir if imports_folder else None)
        if registry_help:
            print(registry.help_string())
            return 0
    if tensorflow:
        flags.check_schemes()  # checked now, since the user's folder may have added a file system
    return run(values)


def _help(command, text, flags):
    """Returns the text of --help: a description of the command, then its flags with their defaults."""
    lines = [f"{command}: {text}", "", "Flags (dashes and underscores are interchangeable):"]
    for flag in flags:
        lines.append(f"  {flag.usage}")
        lines += textwrap.wrap(flag.description, 112, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def answer(name, flags):
    """Returns advice for an unknown flag, in one or two sentences.

    Args:
        name: name of the flag, or another word.
        flags: the command's `Flags`.
    """
    name = name.lstrip("-").replace("-", "_")
    if name in flags:
        return f"Nearest: --{name}."
    setting = name.removeprefix("decode_")
    is_decoding = setting in tensor2tensor_names.DECODING and "decode_hparams" in flags
    takes_hparams = name in _hparams() and flags.has_effect("hparams")
    if instead := tensor2tensor_names.flag_answer(name):
        return instead
    if is_decoding and takes_hparams:
        return (
            f"To set it for the search, use --decode_hparams={name}=VALUE; for the model and its training, "
            f"--hparams={name}=VALUE."
        )
    if is_decoding:
        return f"It is a decoding setting: use --decode_hparams={setting}=VALUE."
    if others := [c for c, module in commands.modules().items() if commands.flags_of(module).has_effect(name)]:
        return f"It is a flag of {', '.join(others)}; remove it here."
    if takes_hparams:
        return f"It is a hyperparameter: use --hparams={name}=VALUE."
    if instead := tensor2tensor_names.hparam_answer(name):
        return instead
    close = nearest(f"--{name}", [f"--{flag.name}" for flag in flags.shown()])
    return f"{close} --help lists all flags.".lstrip()


def _hparams():
    from t2t_lite.settings.config import HParams

    return HParams()
