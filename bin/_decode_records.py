"""Decoding a problem's dev or test records, as tensor2tensor's dataset decoding does."""

import dataclasses
import os
import sys

from t2t_lite.bin import _decode_files, _decode_lines, _trained
from t2t_lite.errors import UserError


def translate_records(flags, settings):
    """Writes `<decode_to_file>.<model>…​.decodes` and, beside it, `.inputs` and `.targets`; shows BLEU."""
    translator = _decode_lines.load_translator(flags)
    inputs, references, split = read_records(flags, settings, translator)
    print(f"decoding {len(inputs):,} {split} examples of {translator.problem.full_name}", file=sys.stderr)
    base = flags.decode_to_file or os.path.join(os.path.dirname(_trained.checkpoints(flags)[0]), split)
    for number in range(settings.num_decodes):
        settings_now, folder = settings, ""
        if settings.num_decodes > 1:
            folder = f"decode_{number:05d}"
            settings_now = dataclasses.replace(settings, sampling_seed=settings.sampling_seed + number)
        _translate_once(flags, settings_now, translator, inputs, references, _in_folder(base, folder))


def read_records(flags, settings, translator):
    """Returns the texts of this command's examples, their references, and "dev" or "test".

    Raises:
        UserError: no such records, or they were made with another vocabulary.
    """
    from t2t_lite.data.problem import FILE_TAGS, DatasetSplit
    from t2t_lite.data.records import read_examples

    split = DatasetSplit.TEST if flags.eval_use_test_set else DatasetSplit.EVAL
    problem = translator.problem
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


def _in_folder(base, folder):
    import tensorflow as tf

    if not folder:
        return base
    folder = os.path.join(os.path.dirname(base), folder)
    tf.io.gfile.makedirs(folder)
    return os.path.join(folder, os.path.basename(base))


def _translate_once(flags, settings, translator, inputs, references, base):
    from t2t_lite.data.files import write_bytes

    suffix = _decode_lines.default_name("", _trained.read_config(flags), settings)
    path = _decode_lines.shard_name(base, settings)
    path = path if path.endswith(suffix) else path + suffix
    errors = _decode_lines.LineErrors(flags)
    one_output = dataclasses.replace(settings, num_samples=-1)  # of records it is their number
    task = _decode_files.Task("examples", inputs, path, references=references if inputs else None)
    _decode_files.translate(flags, one_output, translator, task, errors)
    for extension, lines in (("inputs", inputs), ("targets", references)):
        text = "".join(line + settings.delimiter for line in lines)
        write_bytes(f"{path.rpartition('.')[0]}.{extension}", text.encode("utf-8"))
