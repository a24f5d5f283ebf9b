"""Decoding from a file into a file: in chunks, so that a killed command goes on where it was."""

import contextlib
import dataclasses
import hashlib
import json
import sys

import t2t_lite
from t2t_lite.bin import _decode_lines, _trained
from t2t_lite.errors import UserError, counted

# Lines translated at a time, on each device: enough to sort by length, and little work lost when killed.
_CHUNK = 2000


@dataclasses.dataclass
class Task:
    """What to translate, and where to.

    Attributes:
        name: str, what the lines are of, for messages.
        lines: list of str.
        path: str, of the output; - is standard output.
        first: int, the number of the first line.
        prefixes: list of str, or None.
        references: list of str, or None: BLEU is shown at the end.
    """

    name: str
    lines: list
    path: str
    first: int = 1
    prefixes: list | None = None
    references: list | None = None


def translate_file(flags, settings):
    """Translates --decode_from_file."""
    path = _output_path(flags, settings)
    alignments = _decode_lines.shard_name(flags.alignments_file, settings)
    _decode_lines.check_files(flags, settings, {"--decode_to_file": path, "--alignments_file": alignments})
    errors = _decode_lines.LineErrors(flags)
    source = flags.decode_from_file
    lines, name, first = part_of_file(source, settings, errors)
    task = Task(name, lines, path, first)
    for flag, keep in (("decode_reference", "references"), ("prefix_file", "prefixes")):
        if path := flags[flag].value:
            other, other_name, _ = part_of_file(path, settings, None)
            if len(other) != len(lines):
                raise UserError(
                    f"--{flag}={path}: {other_name} has {counted(len(other), 'line')}, {name} has {len(lines):,}. "
                    "Expected as many."
                )
            setattr(task, keep, other)
    translate(flags, settings, _decode_lines.load_translator(flags), task, errors)


def translate(flags, settings, translator, task, errors):
    """Translates a Task, and says how it went."""
    lines_of = _decode_lines.line_translator(flags, settings, translator, task.name, errors)
    task.lines = lines_of.check_lengths(task.lines)

    def make(chunk, start, on_progress):
        first, end = task.first + start, start + len(chunk)
        prefixes = task.prefixes and task.prefixes[start:end]
        translations = lines_of.translate(chunk, first, prefixes, on_progress)
        _decode_lines.say_what_was_long(lines_of, translations, first)
        texts = [_decode_lines.formatted(flags, settings, chunk, translations, first)]
        if flags.alignments_file:
            texts.append([found.alignment for found in translations])
        return texts, sum(len(found.hypotheses[0].ids) + 1 for found in translations if found.text)

    paths = [task.path, *filter(None, [_decode_lines.shard_name(flags.alignments_file, settings)])]
    outputs = _write(flags, settings, translator, paths, task, make)
    errors.done()
    if task.references is not None:
        _decode_lines.show_bleu([_first_text(flags, line) for line in outputs()], task.references)


def score_file(flags, settings):
    """Writes for each line of --score_file, input and target parted by a tab, the mean loss of a target piece."""
    path = _decode_lines.shard_name(flags.decode_to_file, settings) if flags.decode_to_file else "-"
    _decode_lines.check_files(flags, settings, {"--decode_to_file": path})
    errors = _decode_lines.LineErrors(flags)
    lines, name, first = part_of_file(flags.score_file, settings, errors)
    for number, line in enumerate(lines, first):
        if line.count("\t") != 1:
            columns = line.count("\t") + 1
            problem = f"{name}, line {number}: {columns} column{'s' * (columns != 1)}, expected input<TAB>target."
            lines[number - first] = None if line == "" and flags.on_error == "skip" else errors(problem)
    translator = _decode_lines.load_translator(flags)

    def make(chunk, start, on_progress):
        pairs = [line.split("\t") for line in chunk if line is not None]
        scores = iter(translator.score(*map(list, zip(*pairs, strict=True))) if pairs else [])
        found = [None if line is None else next(scores) for line in chunk]
        on_progress(len(chunk))
        tokens = sum(len(score.token_log_probs) for score in found if score)
        return [["" if score is None else f"{score.per_token:.6f}" for score in found]], tokens

    task = Task(name, lines, path, first)
    _write(flags, settings, translator, [path], task, make, "scoring")
    errors.done()


def part_of_file(path, settings, errors):
    """Returns this command's lines of a file, the name of the file they are in, and the number of the first one."""
    from t2t_lite.decoding import text_files

    part = _decode_lines.shard_name(path, settings)
    if part != path and _exists(part):
        return text_files.input_lines(part, settings.delimiter, errors), part, 1
    lines = text_files.input_lines(path, settings.delimiter, errors)
    begin, end = _decode_lines.shard_range(len(lines), settings)
    return lines[begin:end], path, begin + 1


def _exists(path):
    import tensorflow as tf

    return tf.io.gfile.exists(path)


def _output_path(flags, settings):
    path = flags.decode_to_file
    if not path:
        path = _decode_lines.default_name(flags.decode_from_file, _trained.read_config(flags), settings)
    return _decode_lines.shard_name(path, settings)


def _write(flags, settings, translator, paths, task, make, title="translating"):
    """Makes and writes the outputs of all lines, chunk by chunk.

    Args:
        paths: list of str.
        make: function of (lines, place of the first one, on_progress) -> (for each path a list of lines, tokens).

    Returns:
        Function that returns the list of lines of the first file.
    """
    from t2t_lite.console import Progress
    from t2t_lite.files.pipes import is_device

    keeps = task.path == "-" or is_device(task.path)  # of which nothing can be read again
    delimiter, kept, files = settings.delimiter, [], _open(flags, settings, paths, task)
    chunk = _CHUNK * getattr(translator, "count", 1)
    if files.state is not None:  # what will be compiled from here on: last digits depend on it
        _go_on_as(translator, files.state, task.path)
    progress = Progress(title, "sentences", len(task.lines), files.done)
    try:
        for start in range(files.done, len(task.lines), chunk):
            lines = task.lines[start : start + chunk]
            end = start + len(lines)
            texts, tokens = make(lines, start, lambda n, end=end: progress.add(min(n, end - progress.count)))
            files.write(
                ["".join(line + delimiter for line in of_file) for of_file in texts],
                len(lines),
                translator.search_history,
            )
            progress.add(end - progress.count, tokens)
            kept += texts[0] if keeps else []
        files.finish()
    finally:
        files.close()
    progress.done()
    for path in paths:
        if path != "-":
            if flags.keep_timestamp:
                _decode_lines.take_time(flags, path)
            print(f"written: {path}", file=sys.stderr)
    return (lambda: kept) if keeps else (lambda: _read(task.path, delimiter))


def _go_on_as(translator, history, path):
    """Gives a translator the history that the unfinished file says; a pool has a list of them."""
    count = getattr(translator, "count", None)
    if isinstance(history, dict) if count is None else isinstance(history, list) and len(history) == count:
        translator.search_history = history
    else:
        raise UserError(
            f"{path}: the record of its unfinished part is damaged. Delete {path}.t2t_lite_incomplete.json."
        )


def _read(path, delimiter):
    from t2t_lite.decoding.text_files import input_lines

    return input_lines(path, delimiter)


def _open(flags, settings, paths, task):
    from t2t_lite.files.resumable import ResumableFiles

    if "-" in paths:
        return _ToStandardOutput(paths)
    return ResumableFiles(paths, _made_from(flags, settings, task))


def _made_from(flags, settings, task):
    """All that the outputs depend on, in words that a message can name."""
    asked = ("long_input", "on_error", "n_best_format", "mbr", "worker_gpu", "logical_cpus")
    return {
        "version": t2t_lite.__version__,
        "checkpoint": [_digest_of_file(f"{path}.index") for path in _trained.checkpoints(flags)],
        "decode_hparams": {**dataclasses.asdict(settings), "log_results": None},
        "flags": {name: flags[name].value for name in asked},
        "input": _digest(task.lines),
        "prefixes": _digest(task.prefixes),
    }


def _digest(value):
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _digest_of_file(path):
    from t2t_lite.files import read_bytes

    return hashlib.sha256(read_bytes(path)).hexdigest()  # an index holds a checksum of every weight


class _ToStandardOutput:
    """Has the methods of ResumableFiles; one file is standard output, where nothing can be taken up again."""

    def __init__(self, paths):
        from t2t_lite.decoding.text_files import output_file

        self.done, self.state = 0, None
        self._stack = contextlib.ExitStack()
        self._writers = [
            sys.stdout.write if path == "-" else self._stack.enter_context(output_file(path)) for path in paths
        ]

    def write(self, texts, count, state):
        for write, text in zip(self._writers, texts, strict=True):
            write(text)
        sys.stdout.flush()
        self.done += count

    def finish(self):
        self._stack.close()

    def close(self):
        self._stack.__exit__(*sys.exc_info())


def _first_text(flags, line):
    """Returns the best output in a line that was written."""
    if flags.n_best_format == "json":
        found = json.loads(line)["hypotheses"]
        return found[0]["text"] if found else ""
    return line.split("\t")[0]
