"""Declares the flags of one command with their allowed values, and parses its command line."""

import collections
import csv
import os
import re
import stat

from absl import flags as absl_flags

from t2t_lite.errors import UserError, flag_list, located
from t2t_lite.files import file_errors
from t2t_lite.settings.ranges import Choices, Range, typed_text, typed_value

_MOST_BYTES = 2**20  # maximum size of a --flagfile


class Flags:
    """The absl flags of one call of a command. They are separate from the flags of the process. Numeric flags are
    declared with a range.

    Args:
        explain: function of (name of an unknown flag, this object) that returns advice for the error message.

    Attributes:
        values: absl's FlagValues: `values.train_steps`, `values["train_steps"].present`.
    """

    def __init__(self, explain=lambda name, flags: "--help lists all flags."):
        self.values = absl_flags.FlagValues()
        self._explain = explain
        self._no_effect, self._pairs = {}, {}

    def __contains__(self, name):
        return name in self.values

    def DEFINE_string(self, name, default, help):
        """Declares a flag whose value is text."""
        self._define(name, default, help, "TEXT", lambda _, text: text)

    def DEFINE_path(self, name, default, help):
        """Declares a flag whose value is a path, in which `~` is expanded. None and "" mean that no path is given."""
        self._define(name, default, help, "PATH", _path)

    def DEFINE_list(self, name, default, help):
        """Declares a comma-separated list. An item that contains a comma must be put in double quotes."""
        self._define(name, default, help, "A,B,...", _parts)

    def DEFINE_paths(self, name, default, help):
        """Declares a comma-separated list of paths, in which `~` is expanded."""
        self._define(name, default, help, "A,B,...", _paths)

    def DEFINE_bool(self, name, default, help):
        """Declares a switch: --name, --noname, --name=false."""
        self._define(name, default, help, None, lambda flag, text: typed_value(flag, text, bool))

    def DEFINE_enum(self, name, default, words, help):
        """Declares a flag whose value is one of several words."""
        self._define(name, default, help, "|".join(words), _typed(str, Choices(tuple(words))), tuple(words))

    def DEFINE_integer(self, name, default, help, least=None, most=None, *, limits=None):
        """Declares an integer from `least` to `most`, or within the `Range` `limits`; --help shows the range."""
        self._define_number(int, name, default, help, limits or Range(least, most))

    def DEFINE_integers(self, name, default, help, limits):
        """Declares a comma-separated list of integers, which must lie within a `Range`."""
        self._define(
            name, default, help, "A,B,...",
            lambda flag, text: [typed_value(flag, n, int, limits) for n in _parts(flag, text)],
        )  # fmt: skip

    def DEFINE_float(self, name, default, help, least=None, most=None, *, limits=None):
        """Declares a float from `least` to `most`, or within the `Range` `limits`; --help shows the range."""
        self._define_number(float, name, default, help, limits or Range(least, most))

    def _define_number(self, kind, name, default, help, limits):
        if limits.most is None and limits.below is None:
            raise TypeError(f"--{name}: a flag for a number needs a range. Expected `least` and `most`, or `limits`.")
        help = f"{help.rstrip()} {str(limits).capitalize()}."
        self._define(name, default, help, "NUMBER", _typed(kind, limits))

    def DEFINE_pairs(self, prefix, into):
        """Declares flags --<prefix>NAME=VALUE, which are appended to the text flag `into` as NAME=VALUE."""
        self._pairs[prefix] = into

    def no_effect(self, name, reason, is_bool=False):
        """Declares a tensor2tensor flag without effect, accepted with a warning and hidden from --help."""
        define = self.DEFINE_bool if is_bool else self.DEFINE_string
        define(name, None, reason)
        self._no_effect[name] = reason

    def has_effect(self, name):
        """Returns whether the flag has an effect, that is, was not declared with `no_effect`."""
        return name in self.values and name not in self._no_effect

    def shown(self):
        """Returns the flags that --help lists, in order of declaration."""
        return [self.values[name] for name in self.values if name not in self._no_effect]

    def _define(self, *arguments):
        absl_flags.DEFINE_flag(_Flag(*arguments), flag_values=self.values)

    def parse(self, argv):
        """Parses the words after the program's name into `self.values`. Names may be written with dashes or
        underscores.

        Raises:
            UserError: an unknown flag, a value out of range, a flag given twice with two values, or a stray word.
        """
        words, stray, pairs, files = collections.deque(argv), [], collections.defaultdict(list), set()
        while words:
            word = words.popleft()
            if word == "--":
                stray.extend(words)
                break
            if word == "-" or not word.startswith("-"):
                stray.append(word)
                continue
            typed, equals, value = re.fullmatch(r"--?([^=]*)(=?)(.*)", word, re.DOTALL).groups()
            name = typed.replace("-", "_")
            prefix = next((p for p in self._pairs if name.startswith(p) and name not in self.values), None)
            is_off = name not in self.values and name.startswith("no") and self._is_switch(name[2:])
            if not (name in self.values or is_off or prefix or name == "flagfile"):
                raise UserError(f"--{typed_text(typed)}: unknown flag. {self._explain(name, self)}")
            if equals and is_off:
                raise UserError(f"--{name}={typed_text(value)}: unexpected value. Expected --{name} or --{name[2:]}.")
            if not equals and not is_off and not self._is_switch(name):
                if not words or words[0].startswith("--"):
                    raise UserError(f"--{name}: its value is missing. Expected --{name}=value.")
                value, equals = words.popleft(), "="
            if name == "flagfile":
                words.extendleft(reversed(_words_of_file(value, files)))
            elif prefix:
                pairs[self._pairs[prefix]].append(f"{name.removeprefix(prefix)}={value}")
            elif is_off:
                self.values[name[2:]].parse("false")
            else:
                self.values[name].parse(value if equals else "true")
        for name, settings in pairs.items():
            flag = self.values[name]
            flag.value = ",".join(filter(None, [flag.value, *settings]))
            flag.present += 1
        self.values.mark_as_parsed()
        if stray:
            raise UserError(
                f"{typed_text(stray[0])!r}: unexpected argument. Expected --name=value, or --name and --noname "
                f"for switches. {self._explain(re.split('[= ]', stray[0])[0], self)}"
            )

    def warn_without_effect(self, logger):
        """Warns about flags without effect."""
        for name, reason in self._no_effect.items():
            if self.values[name].present:
                logger.warning(f"--{name} has no effect: {reason}.")

    def check_schemes(self):
        """Raises `UserError` for a path such as s3://bucket/file on a file system that TensorFlow does not support."""
        for flag in self.shown():
            if (flag.is_path or flag.is_paths) and flag.value:
                for path in flag.value.split(",") if isinstance(flag.value, str) else flag.value:
                    file_errors.check_scheme(path)

    def _is_switch(self, name):
        return name in self.values and self.values[name].boolean


class _Flag(absl_flags.Flag):
    """A flag of a command, which may be repeated only with the same value.

    Args:
        name, default, help: as for absl's Flag.
        words: placeholder of the value in --help, or None for a switch.
        convert: function of (--name, text or default) that returns the value or raises `UserError`.

    Attributes:
        choices: tuple of the allowed words; empty for other kinds of flags.
        is_path, is_paths: bool, whether the value is a path, or a comma-separated list of paths.
    """

    def __init__(self, name, default, help, words, convert, choices=()):
        self.words, self.convert, self.choices = words, convert, choices
        self.is_path, self.is_paths = convert is _path, convert is _paths
        super().__init__(absl_flags.ArgumentParser(), None, name, default, help, boolean=words is None)

    @property
    def usage(self):
        """The flag's syntax in --help, such as --train_steps=NUMBER, --[no]describe or --tune[=TEXT]."""
        if self.words is None:
            return f"--[no]{self.name}"
        return f"--{self.name}[={self.words}]" if self.boolean else f"--{self.name}={self.words}"

    @property
    def description(self):
        """The flag's help text, followed by its default if it has one."""
        default = ",".join(self.default) if isinstance(self.default, list) else str(self.default).removesuffix(".0")
        if default in ("None", ""):
            return self.help
        return f"{self.help} Default: {default.lower() if self.boolean else default}."

    def parse(self, argument):
        value = self._parse(argument)
        if self.present and value != self.value:
            raise UserError(
                f"--{self.name} is given twice, as {typed_text(self._argument)} and as {typed_text(argument)}. Remove "
                "one of them."
            )
        self.value, self._argument = value, argument
        self.present += 1

    def recall(self, value):
        """Sets a flag that is not on the command line to a value remembered from earlier; None removes the value."""
        if not self.present:
            self.value = None if value is None else self._parse(str(value))

    def _parse(self, argument):
        return self.convert(f"--{self.name}", argument)


def as_typed(name, value):
    """Returns a flag as it is typed, such as --languages=en,de for the value ["en", "de"]."""
    return f"--{name}={flag_list(map(str, value)) if isinstance(value, list) else value}"


def _typed(kind, limits):
    return lambda flag, text: typed_value(flag, text, kind, limits)


def _path(flag, text):
    with located(flag):
        return os.path.expanduser(file_errors.check_name(text))


def _paths(flag, text):
    return [_path(flag, path) for path in _parts(flag, text)]


def _parts(flag, text):
    if isinstance(text, list):
        return text
    try:
        parts = [part.strip() for part in next(csv.reader([text], strict=True), [])]
        if not all(parts):
            raise UserError(f"{flag}={typed_text(text)}: an item is empty. Expected a list a,b.")
        return parts
    except csv.Error:
        raise UserError(
            f"{flag}={typed_text(text)}: expected a list a,b. Put an item that contains a comma or a quote in double "
            "quotes, and double the quotes inside."
        ) from None


def _words_of_file(path, before):
    """Returns the lines of a --flagfile, except blank lines and lines that begin with # or //."""
    where, path = f"--flagfile={typed_text(path)}", os.path.expanduser(path)
    try:
        key = os.path.realpath(path)
        if key in before:
            raise UserError(
                f"{where} has already been read. A file of flags may be given only once and must not include itself."
            )
        before.add(key)
        is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
        if is_pipe and not path.startswith(("/dev/fd/", "/proc/self/fd/")):  # <(…) is allowed: that pipe has a writer
            raise UserError(f"{where} is a pipe. Expected a file.")
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES or b"\0" in content:
            raise UserError(f"{where} is not a file of flags. Expected one --name=value per line, at most 1 MiB.")
        lines = re.split(r"\r\n|\r|\n", content.decode("utf-8-sig"))
    except UserError:
        raise
    except UnicodeDecodeError:
        raise UserError(f"{where} is not UTF-8. Expected one --name=value per line.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise UserError(f"{where} cannot be read: {reason}. Expected a file with one --name=value per line.") from None
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith(("#", "//"))]
