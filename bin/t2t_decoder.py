"""Translates a file, standard input, a problem's records, or what you type, with a trained model.

    t2t-decoder --output_dir=train --decode_from_file=test.en --decode_to_file=test.de
    t2t-decoder --output_dir=train < test.en > test.de
    t2t-decoder --output_dir=train --decode_interactive
    t2t-decoder --output_dir=train --problem=translate_own --data_dir=data      # its dev records
    t2t-decoder --output_dir=train --score_file=pairs.tsv --decode_to_file=losses
    t2t-decoder --output_dir=train --tune --decode_from_file=dev.en --decode_reference=dev.de

Every line of input gives one line of output, in order; an empty line stays empty. Results go to the file or to standard
output, progress to standard error. A command that was killed goes on where it was when it is typed again.
docs/decoding.md has it all.
"""

import os
import sys

from t2t_lite import streams
from t2t_lite.bin import _app, _trained
from t2t_lite.errors import UserError
from t2t_lite.ranges import GPUS, LOGICAL_CPUS, SHARDS

_DECODE_HPARAMS = (
    "name=value,… of beam_size=4 (1: greedy), alpha=0.6 (length penalty), extra_length=50 (longest output: that of the "
    "input and so many more pieces), batch_size=32 (sentences), return_beams, n_best, write_beam_scores, "
    "max_input_size, sampling_method=random, sampling_temp, sampling_keep_top_k, sampling_keep_top_p, sampling_seed, "
    "num_samples, num_decodes, replace_unknown, delimiter, shards, shard_id, shards_start_offset, shard_google_format, "
    "identity_output, log_results, length_penalty=gnmt, ends=any. A parsing problem has its own defaults: "
    "beam_size=21, alpha=0.3, extra_length=300."
)


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_integer("worker_gpu", 1, "GPUs that share the input; 1 falls back to the CPU.", limits=GPUS)
    flags.DEFINE_integer(
        "logical_cpus", 0, "Share the input over that many replicas on the CPU instead; 0: off.", limits=LOGICAL_CPUS
    )
    _trained.define_flags(flags)
    flags.DEFINE_path("decode_from_file", "", "What to translate, one sentence a line; - is standard input.")
    flags.DEFINE_path("decode_to_file", "", "Where to write; - is standard output. Default: <input>.<model>….decodes.")
    flags.DEFINE_path("decode_reference", "", "A reference translation: BLEU is shown at the end.")
    flags.DEFINE_string("decode_hparams", "", _DECODE_HPARAMS)
    flags.DEFINE_bool("decode_interactive", False, "Translate what is typed, line by line; q quits.")
    flags.DEFINE_enum("long_input", None, ["split", "truncate", "refuse"], "Lines that are too long for the model: "
                      "split them at ends of sentences, cut them off, or stop. Default: split, but truncate where "
                      "max_input_size is set.")  # fmt: skip
    flags.DEFINE_enum("on_error", "stop", ["stop", "skip"], "Lines that cannot be translated (not UTF-8, too long for "
                      "--long_input=refuse): stop, or leave their outputs empty.")  # fmt: skip
    flags.DEFINE_enum("n_best_format", "text", ["text", "json"], "text: outputs of a line are parted by tabs; json: a "
                      "line of JSON for each line, with tokens and their scores.")  # fmt: skip
    flags.DEFINE_path("prefix_file", "", "For each line, what its output has to begin with.")
    flags.DEFINE_path("alignments_file", "", "Where to write word alignments, 0-0 1-2 …, a line for each line.")
    flags.DEFINE_enum("mbr", None, ["chrf", "bleu"], "Draw num_samples=32 outputs of a line, and write the one that is "
                      "most like the others by this measure (minimum Bayes risk).")  # fmt: skip
    flags.DEFINE_path("score_file", "", "Lines of input<TAB>target: write the mean loss of a target piece for each.")
    flags.DEFINE_string("tune", "", "Try beam_size=1,4,8;alpha=0,0.6,1 (or another such grid) on a dev set: "
                        "--decode_from_file and --decode_reference, or the problem's records.")  # fmt: skip
    flags.values["tune"].boolean = True  # --tune alone is the grid above
    flags.DEFINE_bool("eval_use_test_set", False, "Of the problem's records, take the test ones.")
    flags.DEFINE_bool("keep_timestamp", False, "Give the output file the checkpoint's time.")
    flags.DEFINE_integer("decode_shards", 1, "Commands that share the input; this one has part --worker_id.",
                         limits=SHARDS)  # fmt: skip
    flags.DEFINE_integer("worker_id", 0, "Which part of --decode_shards.", 0, SHARDS.most - 1)
    flags.no_effect("decode_in_memory", "outputs go to a file or to standard output; in Python: "
                    "t2t_lite.Translator.load(output_dir).translate(texts)", is_bool=True)  # fmt: skip
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for a mistake that needs no import to be seen."""
    _trained.check(flags)
    if _wants_tuning(flags):
        if bool(flags.decode_from_file) != bool(flags.decode_reference) or not (
            flags.decode_from_file or flags.data_dir
        ):
            raise UserError("--tune: needs a dev set: --decode_from_file and --decode_reference, or --data_dir.")
    elif flags.eval_use_test_set and (flags.decode_from_file or flags.decode_interactive or flags.score_file):
        raise UserError("--eval_use_test_set: is about the problem's records. Leave it out, or --decode_from_file.")
    elif flags.eval_use_test_set and not flags.data_dir:
        raise UserError("--eval_use_test_set: needs --data_dir, where the records are.")
    elif not _has_input(flags) and streams.is_terminal():
        raise UserError(
            "missing --decode_from_file (a text file, or - for standard input), --decode_interactive, or --problem and "
            "--data_dir, whose records are decoded."
        )
    inputs = [f"--{name}" for name in ("decode_interactive", "decode_from_file", "score_file") if flags[name].value]
    if len(inputs) > 1:
        raise UserError(f"{' and '.join(inputs)}: each says what to read. Leave all but one out.")
    unread = [
        f"--{name}" for name in ("decode_reference", "prefix_file", "alignments_file", "mbr") if flags[name].value
    ]
    if flags.score_file and unread:
        raise UserError(f"{', '.join(unread)}: only of translations. Leave out, or --score_file.")
    for name in ("decode_from_file", "decode_reference", "prefix_file", "score_file"):
        path = flags[name].value
        shared = flags.decode_shards > 1 or "shards" in flags.decode_hparams
        if path and path != "-" and "://" not in path and not os.path.exists(path) and not shared:
            raise UserError(f"--{name}={path}: no such file. Check the path.")
    if flags.worker_id >= flags.decode_shards:
        raise UserError(f"--worker_id={flags.worker_id}: expected less than --decode_shards={flags.decode_shards}.")


def run(flags):
    """Translates."""
    from t2t_lite.bin import _decode_files, _decode_records, _decode_stream, _decode_tune

    settings = _settings(flags)
    if _wants_tuning(flags):
        return _decode_tune.tune(flags, settings)
    if flags.decode_interactive:
        return _decode_stream.interact(flags, settings)
    if flags.score_file:
        return _decode_files.score_file(flags, settings)
    if flags.decode_from_file not in ("", "-"):
        return _decode_files.translate_file(flags, settings)
    if not flags.decode_from_file and _wants_records(flags):
        return _decode_records.translate_records(flags, settings)
    return _decode_stream.translate_stdin(flags, settings)


def _settings(flags):
    """Returns the DecodeHParams, those that are flags as well included."""
    from t2t_lite.decoding.decode_hparams import DecodeHParams

    settings = DecodeHParams.parse(flags.decode_hparams, defaults=_trained.decode_defaults(flags))
    if flags["decode_shards"].present:
        settings.shards, settings.shard_id = flags.decode_shards, flags.worker_id
    of_records = not flags.decode_from_file and (_wants_records(flags) or flags.tune)
    if settings.num_samples != -1 and not (of_records or settings.is_sampling or flags.mbr):
        raise UserError(f"--decode_hparams: num_samples={settings.num_samples} of a line needs sampling_method=random.")
    if not of_records:
        settings.search_options()
    settings.check_effect(
        flags.decode_hparams,
        mbr=bool(flags.mbr),
        may_sample=flags.decode_interactive,
        scores=bool(flags.score_file),
    )
    if settings.num_decodes != 1 and not (of_records and settings.is_sampling):
        raise UserError(
            f"--decode_hparams: num_decodes={settings.num_decodes} needs a problem's records and "
            "sampling_method=random; of a file there is num_samples."
        )
    return settings


def _wants_tuning(flags):
    return flags.tune not in ("", "false")


def _wants_records(flags):
    return bool(flags.eval_use_test_set or (flags.problem and flags.data_dir))


def _has_input(flags):
    return flags.decode_interactive or flags.decode_from_file or flags.score_file or _wants_records(flags)


def main(argv=None):
    """Runs the command; returns its exit status."""
    return _app.main("t2t-decoder", define_flags, run, argv, check=check)


if __name__ == "__main__":
    sys.exit(main())
