"""Decodes a file, standard input, or typed lines. A file is decoded in chunks, so that a killed command can resume."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import sys

import t2t_lite
from t2t_lite import files
from t2t_lite.cli import console
from t2t_lite.cli.console import Progress
from t2t_lite.corpora import wmt_files
from t2t_lite.corpora.plain_text import LONGEST_LINE
from t2t_lite.decoding import bfloat16
from t2t_lite.decoding.command import text_files
from t2t_lite.decoding.search.loops import use_a_thread_per_search
from t2t_lite.errors import UserError, counted
from t2t_lite.evaluation.scores import METRICS, corpus_scores
from t2t_lite.files.pipes import is_device
from t2t_lite.files.resumable import ResumableFiles
from t2t_lite.settings.ranges import typed_value
from t2t_lite.tasks.task import unit_of

_INTERACTIVE_HELP = "INTERACTIVE MODE: type a sentence, ns=<n> (samples), dl=<n> (extra length of outputs) or q (quit)."
_PREDICTING_HELP = "INTERACTIVE MODE: type a text, or two with a tab between them, or q (quit)."
_MANY_BATCHES = 8  # the last batch of a chunk is searched alone, so a chunk should have many batches


@dataclasses.dataclass
class FilePart:
    """The lines of a file, or of this command's shard of the file, with their prefixes and references.

    Attributes:
        name: str, the source of the lines, for messages.
        lines: list of lines: each is a str, or another type that `LinePredictor` accepts, or None for an unreadable
            line.
        first: int, the number of the first line.
        prefixes: list of str, or None.
        references: list of str, for BLEU at the end, or None.
    """

    name: str
    lines: list
    first: int = 1
    prefixes: list | None = None
    references: list | None = None

    def lines_beside(self, flag, path, settings):
        """Returns the lines of a parallel file; raises `UserError` if the number of lines differs from the input's."""
        side = wmt_files.REFERENCE if flag == "--decode_reference" else wmt_files.SOURCE
        other = part_of_file(path, settings, read=functools.partial(text_files.input_lines, side=side))
        if len(other.lines) != len(self.lines):
            raise UserError(
                f"{flag}={path}: {other.name} has {counted(len(other.lines), 'line')}, but {self.name} has "
                f"{len(self.lines):,}. Expected the same number."
            )
        return other.lines


def translate_file(job, source, output="", reference="", prefixes=""):
    """Translates a file.

    Args:
        job: DecodingJob.
        source, output: paths. If `output` is "", outputs go to a file in the source's folder with the name that
            tensor2tensor would give it. If the source is a device such as /dev/stdin, they go to standard output.
        reference, prefixes: paths of files with as many lines as the source, or "".

    Raises:
        UserError: a file is missing or has a different number of lines, or a line cannot be translated.
    """
    path = job.settings.shard_name(output or _default_output(job, source))
    write = text_files.writer(output, job.runs[0].problem)
    job.check_files({"--decode_to_file": path, **dict(job.files_beside().values())})
    part = part_of_file(source, job.settings, job.errors, job.reader(source))
    if reference:
        part.references = part.lines_beside("--decode_reference", reference, job.settings)
    if prefixes:
        part.prefixes = part.lines_beside("--prefix_file", prefixes, job.settings)
    translate_lines(job, part, path, write)


def _default_output(job, source):
    """Returns the default output: a path in the source's folder, or "-" if the source is a device like /dev/stdin."""
    is_of_system = is_device(source) and os.path.abspath(source).startswith(("/dev/", "/proc/"))
    return "-" if is_of_system else job.default_name(source)


def searches_many_batches(job, num_lines):
    """Returns whether a job mostly runs uncompiled searches in parallel, which run faster with one thread per search.

    An encoder predicts without a search. Sampling is compiled, and so is the search of a single sentence; a compiled
    search uses all threads.
    """
    options = job.settings.search
    if job.predicts or options.batch_size == 1 or options.sampling or job.mbr or len(job.devices) > 1:
        return False
    return num_lines >= _MANY_BATCHES * options.batch_size


def translate_lines(job, part, path, write=None, convert=None):
    """Answers the lines of a `FilePart`, writes the answers to the file `path`, and logs a summary.

    Args:
        job: DecodingJob.
        part: FilePart.
        path: str, where - is standard output.
        write: a function from `Problem.writers`, or None to write lines of text.
        convert: None, or a function that converts the output lines to files {path: bytes}, which are written instead.
    """
    if searches_many_batches(job, len(part.lines)):
        use_a_thread_per_search()
        if job.compute_dtype is None:
            rows = job.settings.search.batch_size * job.settings.search.beam_size
            bfloat16.suggest("--compute_dtype=bfloat16", job.translator.hparams.values(), rows)
    as_ids = dataclasses.replace(job.settings, identity_output=True, write_beam_scores=False)
    lines_of = job.lines_of(part.name)
    checked = lines_of.check_lengths(part.lines, part.first)

    def make(chunk, start, on_progress):
        prefixes = part.prefixes and part.prefixes[start : start + len(chunk)]
        lines = checked[start : start + len(chunk)]
        outputs, answers = lines_of.outputs(lines, part.first + start, prefixes, on_progress, inputs=chunk)
        if write:
            outputs = [text_files.output_line(answer, as_ids) for answer in answers]
        texts = [outputs, *([answer.beside.get(name, "") for answer in answers] for name in job.files_beside())]
        return texts, sum(answer.tokens for answer in answers)

    paths = [path, *(beside for _, beside in job.files_beside().values())]

    def converted(lines):
        contents = text_files.converted(write, path, part.lines, lines, job.translator.encoders)
        job.check_files({"--decode_to_file": [*contents]})  # the problem may write to other paths
        return contents

    outputs = _write(job, paths, part, make, lines_of.title, converted if write else convert)
    if part.references:  # the score of an empty file is undefined
        # sacreBLEU's score with its signature, which differs from tensor2tensor's BLEU_cased: see t2t-bleu.
        texts = [_first_text(job, line) for line in outputs()]
        scores = corpus_scores(texts, part.references, ["bleu"], job.bleu_tokenization, where=path)
        print(f"{METRICS['bleu']} = {scores['bleu']}", file=sys.stderr)


def score_file(job, source, output="-"):
    """Writes the mean loss per target piece for each line of a file. The lines are input<TAB>target.

    For a language model, the lines are texts, and the mean is taken over the pieces of the text. An empty text has no
    loss.
    """
    path = job.settings.shard_name(output)
    job.check_files({"--decode_to_file": path})
    part = part_of_file(source, job.settings, job.errors)
    for number, line in enumerate(part.lines, part.first):
        if line is not None and line.count("\t") != 1 and not job.generates:
            columns = counted(line.count("\t") + 1, "column")
            part.lines[number - part.first] = job.errors(
                f"{part.name}, line {number}: {columns}. Expected input<TAB>target."
            )
    lines_of = job.lines_of(part.name)

    def make(chunk, start, on_progress):
        target_scores = lines_of.score(chunk, part.first + start)
        on_progress(len(chunk))
        counts = [len(score.token_log_probs) if score else 0 for score in target_scores]
        texts = [f"{score.per_token:.6f}" if count else "" for score, count in zip(target_scores, counts, strict=True)]
        return [texts], sum(counts)

    _write(job, [path], part, make, "scoring")


def part_of_file(path, settings, errors=None, read=text_files.input_lines):
    """Returns this command's `FilePart`; `read` reads a file and has the arguments of `text_files.input_lines`."""
    name = settings.shard_name(path)
    if name != path and files.exists(name):
        return FilePart(name, read(name, settings.delimiter, errors))
    lines = read(path, settings.delimiter, errors)
    begin, end = settings.shard_range(len(lines))
    return FilePart(path, lines[begin:end], begin + 1)


def made_from(job, part, title):
    """Returns everything that the outputs depend on, {name for messages: value}; `title` names the kind of job."""
    names = ["long_input", "split_sentences", "on_error", "n_best_format", "mbr", "devices", "compute_dtype"]
    names += ["tokenization"] if job.mbr == "bleu" else []
    return {
        "kind of job": title,
        "version": t2t_lite.__version__,
        # the index contains a checksum of every weight
        "checkpoint": [hashlib.sha256(files.read_bytes(f"{run.checkpoint}.index")).hexdigest() for run in job.runs],
        "decode_hparams": {**dataclasses.asdict(job.settings), "log_results": None},
        "flags": {name: getattr(job, name) for name in names},
        "input": _digest([part.first, part.lines]),
        "prefixes": _digest(part.prefixes),
    }


def _digest(value):
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _write(job, paths, part, make, title, convert=None):
    """Computes and writes the outputs of all lines, chunk by chunk.

    Args:
        job: DecodingJob.
        paths: list of str.
        part: FilePart.
        make: function of (lines, index of the first line, on_progress) that returns (a list of lines for each path,
            the number of tokens).
        title: str, the kind of job, such as "scoring". An unfinished output is not resumed by a job of another kind.
        convert: None, or a function that converts the first output's lines to {path: bytes}, the files to write
            instead of the first output. Until these files are written, the lines are in `<path>.ids`.

    Returns:
        A function that returns the lines of the first output file as a list.
    """
    paths = [f"{paths[0]}.ids", *paths[1:]] if convert else paths
    keeps = paths[0] == "-" or is_device(paths[0])  # standard output cannot be read back
    translator, delimiter, outputs_so_far = job.translator, job.settings.delimiter, []
    written = _ToStandardOutput(paths) if "-" in paths else ResumableFiles(paths, made_from(job, part, title))
    chunk = job.chunk * max(1, len(job.devices))
    if written.state is not None:  # the search history affects the last digits of scores
        translator.search_history = written.state
    progress = Progress(title, f"{unit_of(job.runs[0].problem)}s", len(part.lines), written.done)
    try:
        for start in range(written.done, len(part.lines), chunk):
            lines = part.lines[start : start + chunk]
            end = start + len(lines)
            texts, tokens = make(lines, start, lambda n, end=end: progress.add(min(n, end - progress.count)))
            contents = ["".join(line + delimiter for line in file_lines) for file_lines in texts]
            written.write(contents, len(lines), translator.search_history)
            progress.add(end - progress.count, tokens)
            outputs_so_far += texts[0] if keeps else []
        written.finish()
    finally:
        written.close()
    progress.done()
    lines = (lambda: outputs_so_far) if keeps else (lambda: files.read_bytes(paths[0]).decode().split(delimiter)[:-1])
    for path in [*_replaced(paths[0], convert(lines())), *paths[1:]] if convert else paths:
        if path != "-":
            if job.keep_timestamp:
                job.take_time(path)
            print(f"written: {path}", file=sys.stderr)
    job.errors.done()
    return lines


def _replaced(path, contents):
    """Writes files {path: bytes}, removes the file that these files replace, and returns the written paths."""
    for name, content in contents.items():
        files.write_bytes(name, content)
    files.remove(path)
    return [*contents]


class _ToStandardOutput:
    """Takes the place of ResumableFiles if an output is standard output, in which case nothing can be resumed."""

    def __init__(self, paths):
        self.done, self.state = 0, None
        self._stack = contextlib.ExitStack()
        self._writers = [self._stack.enter_context(text_files.output_file(path)) for path in paths]

    def write(self, texts, count, state):
        for write, text in zip(self._writers, texts, strict=True):
            write(text)

    def finish(self):
        self._stack.close()

    def close(self):
        self._stack.__exit__(*sys.exc_info())


def _first_text(job, line):
    """Returns the best output in a written line, which may contain several outputs."""
    if job.n_best_format == "json":
        return json.loads(line)["hypotheses"][0]["text"]
    return line.split("\t")[0]


def translate_stdin(job, output="-"):
    """Translates standard input to `output`, writing the outputs of all available lines before reading more."""
    job.check_files({"--decode_to_file": output}, {"standard input": "-"})
    lines_of, delimiter = job.lines_of("standard input"), job.settings.delimiter
    with text_files.output_file(output) as write:
        for first, lines in text_files.stdin_lines(delimiter, job.errors):
            texts, _ = lines_of.outputs(lines, first)
            write("".join(text + delimiter for text in texts))
    job.errors.done()


def interact(job):
    """Decodes the lines that the user types until q or the end of the input. Only outputs are written to stdout."""
    job.translator  # noqa: B018  (load it before prompting the user)
    print(_PREDICTING_HELP if job.predicts else _INTERACTIVE_HELP, file=sys.stderr)
    for line in console.typed_lines("> ", LONGEST_LINE):
        try:
            changed = None if job.predicts else _changed(job.settings, line, bool(job.mbr))
            if changed is None:
                _answer(job, line)
            else:
                job = job.with_settings(changed)
        except UserError as error:
            print(error, file=sys.stderr)


def _changed(settings, line, mbr):
    """Returns the settings changed by a line such as dl=20, or None for a line to translate."""
    name, equals, value = line.partition("=")
    if not equals or name not in ("ns", "dl", "it"):
        return None
    if name == "it":
        if value != "text":
            raise UserError(f"it={value}: not supported, since inputs are always text.")
        return settings
    number = typed_value(name, value, int)
    if name == "dl":
        changed = settings.searching(extra_length=number)
    else:
        changed = dataclasses.replace(settings, num_samples=number if number > 0 else -1)
        changed = changed.searching(sampling=number > 0)
    changed.check(mbr), changed.search_options(mbr)
    return changed


def _answer(job, line):
    lines_of = job.lines_of("input")
    lines_of.compile = False  # uncompiled, since the user would have to wait for the compilation
    plain = not (job.n_best_format == "json" or job.settings.write_beam_scores or job.settings.identity_output)
    if plain and (parts := lines_of.stream(line)):
        for part in parts:
            print(part, end="", flush=True)
        print()
        return
    (output,), _ = lines_of.outputs([line])
    print(output if job.n_best_format == "json" or job.predicts else output.replace("\t", "\n"), flush=True)
