"""Decoding a problem's dev or test records, as tensor2tensor's dataset decoding does."""

import dataclasses
import os
import sys

from t2t_lite.bin import _decode_files, _decode_lines, _trained
from t2t_lite.errors import UserError


def translate_records(flags, settings):
    """Writes `<decode_to_file>.<model>…​.decodes` and, beside it, `.inputs` and `.targets`; shows BLEU."""
    from t2t_lite import files, registry
    from t2t_lite.data.problem import FILE_TAGS

    split = _split(flags)
    base = flags.decode_to_file or os.path.join(os.path.dirname(_trained.checkpoints(flags)[0]), FILE_TAGS[split])
    paths = [_output_path(flags, settings, base, number) for number in range(settings.num_decodes)]
    alignments = _decode_lines.shard_name(flags.alignments_file, settings)
    outputs = {"--decode_to_file": [*paths, *(name for path in paths for name in _beside(path))]}
    _decode_lines.check_files(
        flags,
        settings,
        outputs | {"--alignments_file": [alignments] * settings.num_decodes},
        {"the problem's": registry.problem(_trained.read_config(flags)["problem"]).shard_paths(flags.data_dir, split)},
    )
    translator = _decode_lines.load_translator(flags)
    inputs, references, split_name = read_records(flags, settings, translator)
    print(f"decoding {len(inputs):,} {split_name} examples of {translator.problem.full_name}", file=sys.stderr)
    for number, path in enumerate(paths):
        files.make_folder(os.path.dirname(path) or ".")
        settings_now = dataclasses.replace(settings, sampling_seed=settings.sampling_seed + number)
        _translate_once(flags, settings_now, translator, inputs, references, path)


def read_records(flags, settings, translator):
    """Returns the texts of this command's examples, their references, and "dev" or "test".

    Raises:
        UserError: no such records, or they were made with another vocabulary.
    """
    from t2t_lite.data.problem import FILE_TAGS
    from t2t_lite.data.records import read_examples

    split, problem = _split(flags), translator.problem
    for side, encoder in problem.get_feature_encoders(flags.data_dir).items():
        if encoder.fingerprint != translator.encoders[side].fingerprint:
            raise UserError(
                f"--data_dir={flags.data_dir}: its vocabulary of the {side} is not the one that the model was trained "
                "with. Name the folder that the model was trained on."
            )
    examples = map(problem.preprocess_example, read_examples(problem.shard_paths(flags.data_dir, split)))
    wanted = None if settings.num_samples == -1 else settings.num_samples
    pairs = []
    for example in examples:
        if len(pairs) == wanted:
            break
        pairs.append([_text(translator, side, example[side]) for side in ("inputs", "targets")])
    begin, end = _decode_lines.shard_range(len(pairs), settings)
    inputs, references = ([pair[side] for pair in pairs[begin:end]] for side in (0, 1))
    return inputs, references, FILE_TAGS[split]


def _text(translator, side, ids):
    ids = ids[: ids.index(1)] if 1 in ids else ids
    text = translator.encoders[side].decode([i for i in ids if i])
    return (
        " ".join(text.splitlines())
        if side == "inputs"
        else translator.problem.output_text("", text, translator.encoders)
    )


def _split(flags):
    from t2t_lite.data.problem import DatasetSplit

    return DatasetSplit.TEST if flags.eval_use_test_set else DatasetSplit.EVAL


def _output_path(flags, settings, base, number):
    """Returns the path of the outputs of one pass over the records; of several, each has a folder of its own."""
    if settings.num_decodes > 1:
        base = os.path.join(os.path.dirname(base), f"decode_{number:05d}", os.path.basename(base))
    suffix = _decode_lines.default_name("", _trained.read_config(flags), settings)
    path = _decode_lines.shard_name(base, settings)
    return path if path.endswith(suffix) else path + suffix


def _beside(path):
    """Returns the paths of inputs and targets, beside the outputs."""
    return [f"{path.rpartition('.')[0]}.{extension}" for extension in ("inputs", "targets")]


def _translate_once(flags, settings, translator, inputs, references, path):
    from t2t_lite.files import write_bytes

    errors = _decode_lines.LineErrors(flags)
    one_output = dataclasses.replace(settings, num_samples=-1)  # of records it is their number
    task = _decode_files.Task("examples", inputs, path, references=references if inputs else None)
    _decode_files.translate(flags, one_output, translator, task, errors)
    for other, lines in zip(_beside(path), (inputs, references), strict=True):
        write_bytes(other, "".join(line + settings.delimiter for line in lines).encode("utf-8"))
