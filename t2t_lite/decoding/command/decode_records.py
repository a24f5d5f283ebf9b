"""Decodes a problem's dev or test records, as tensor2tensor's dataset decoding does."""

import copy
import dataclasses
import itertools
import os
import sys

from t2t_lite import files
from t2t_lite.data.problem import FILE_TAGS
from t2t_lite.data.records import Records
from t2t_lite.decoding.command.decode_files import FilePart, translate_lines
from t2t_lite.decoding.command.text_files import as_field
from t2t_lite.settings.ranges import SAMPLING_SEED


def translate_records(job, split, output=""):
    """Decodes records to `<output>.<model>….decodes`, writes the files `.inputs` and `.targets`, and shows BLEU.

    Args:
        job: DecodingJob.
        split: DatasetSplit.
        output: path with which the files' names begin, or "" to write the files to the checkpoint's folder.
    """
    base = output or os.path.join(os.path.dirname(job.runs[0].checkpoint), FILE_TAGS[split])
    paths = [_output_path(job, base, number) for number in range(job.settings.num_decodes)]
    outputs = {flag: [beside] * job.settings.num_decodes for flag, beside in job.files_beside().values()}
    outputs["--decode_to_file"] = [*paths, *(name for path in paths for name in _beside(path))]
    job.check_files(outputs, {"the problem's": Records(job.runs[0].problem, job.data_dir, split).paths})
    inputs, references = read_records(job, split)
    lines = [[as_field(text, job.settings.delimiter) for text in texts] for texts in (inputs, references)]
    full_name = job.translator.problem.full_name
    print(f"decoding {len(inputs):,} {FILE_TAGS[split]} examples of {full_name}", file=sys.stderr)
    for number, path in enumerate(paths):
        files.make_folder(os.path.dirname(path) or ".")
        # When records are decoded, num_samples is the number of records.
        once = dataclasses.replace(job.settings, num_samples=-1)
        once = once.searching(seed=(once.search.seed + number) % (int(SAMPLING_SEED.most) + 1))
        has_texts = job.n_best_format == "json" or not job.settings.identity_output  # BLEU cannot be computed from ids
        part = FilePart("examples", inputs, references=lines[1] if has_texts else None)
        translate_lines(job.with_settings(once), part, path)
        for other, side_lines in zip(_beside(path), lines, strict=True):
            files.write_bytes(other, "".join(line + job.settings.delimiter for line in side_lines).encode("utf-8"))


def read_records(job, split):
    """Returns the texts of this job's shard of the examples, and their references; both may have line ends.

    Raises:
        UserError: the records are missing, or they were generated with a different vocabulary.
    """
    translator = job.translator
    # A problem on the user's files reads the settings of data_dir, but the model keeps those of its own data.
    records = Records(copy.copy(translator.problem), job.data_dir, split)
    records.check_vocabulary_of_model(translator.encoders)
    limit = None if job.settings.num_samples == -1 else job.settings.num_samples
    pairs = []
    for example in itertools.islice(records.examples(translator.hparams), limit):
        inputs, targets = (_text(translator.encoders[side], example[side]) for side in ("inputs", "targets"))
        pairs.append((inputs, translator.problem.output_text(inputs, targets, translator.encoders)))
    begin, end = job.settings.shard_range(len(pairs))
    return [pair[0] for pair in pairs[begin:end]], [pair[1] for pair in pairs[begin:end]]


def _text(encoder, ids):
    ids = ids[: ids.index(1)] if 1 in ids else ids
    return encoder.decode([i for i in ids if i])


def _output_path(job, base, number):
    """Returns the output path of a pass over the records; if there are several passes, each has its own folder."""
    if job.settings.num_decodes > 1:
        base = os.path.join(os.path.dirname(base), f"decode_{number:05d}", os.path.basename(base))
    suffix = job.default_name("")
    path = job.settings.shard_name(base)
    return path if path.endswith(suffix) else path + suffix


def _beside(path):
    """Returns the paths of the inputs and targets that belong to an output path."""
    return [f"{path.rpartition('.')[0]}.{extension}" for extension in ("inputs", "targets")]
