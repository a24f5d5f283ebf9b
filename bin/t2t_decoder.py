"""Translates a file, standard input, a problem's records, or what you type, with a trained model.

A language model continues texts, and an encoder predicts labels, tags or answers.

    t2t-decoder --output_dir=train --decode_from_file=test.en --decode_to_file=test.de
    t2t-decoder --output_dir=train < test.en > test.de
    t2t-decoder --output_dir=train --decode_interactive
    t2t-decoder --output_dir=train --problem=translate_own --data_dir=data      # its dev records
    t2t-decoder --output_dir=train --score_file=pairs.tsv --decode_to_file=losses
    t2t-decoder --output_dir=train --tune --decode_from_file=dev.en --decode_reference=dev.de
    t2t-decoder --output_dir=encoder --decode_from_file=texts --features_file=features.npz

Every line of input gives one line of output, in order; an empty line stays empty. Results go to the file or to standard
output, progress to standard error. A command that was killed resumes where it stopped when it is run again.
docs/decoding.md describes everything.
"""

import logging
import sys

from t2t_lite.bin import _app, _trained
from t2t_lite.bin._setting_flags import check_tokenization, define_tokenization
from t2t_lite.decoding.command import flag_checks
from t2t_lite.decoding.command.decode_hparams import HELP
from t2t_lite.settings.ranges import COMPUTE_DTYPES, GPUS, LOGICAL_CPUS, SHARDS, SPLIT_SENTENCES

_LOGGER = logging.getLogger("t2t_lite")


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_integer("worker_gpu", 1, "Number of GPUs that share the input; 1 falls back to the CPU.", limits=GPUS)
    flags.DEFINE_integer("logical_cpus", 0, "Number of replicas on the CPU that share the input instead; 0: off.",
                         limits=LOGICAL_CPUS)  # fmt: skip
    _trained.define_flags(flags)
    flags.DEFINE_path("decode_from_file", "", "File to translate, one sentence per line; - is standard input.")
    flags.DEFINE_path("decode_to_file", "", "Where to write; - is standard output. Default: <input>.<model>….decodes.")
    flags.DEFINE_path(
        "decode_reference", "", "File with a reference translation of each line: BLEU is shown at the end."
    )
    define_tokenization(flags)
    flags.DEFINE_string("decode_hparams", "", HELP)
    flags.DEFINE_enum("compute_dtype", None, COMPUTE_DTYPES, "bfloat16: faster on CPUs with AVX512-BF16 or AMX, 8 "
                      "significant bits; elsewhere float32 is used. Default: as the model was trained.")  # fmt: skip
    flags.DEFINE_bool("decode_interactive", False, "Translate what is typed, line by line; q quits.")
    flags.DEFINE_enum("long_input", None, ["split", "truncate", "refuse"], "Lines that are too long for the model: "
                      "split them at ends of sentences, cut them off, or stop. Default for translation: split, but "
                      "truncate if max_input_size is set; for other tasks see docs/decoding.md.")  # fmt: skip
    flags.DEFINE_enum("split_sentences", None, SPLIT_SENTENCES, "Translate a line's sentences one by one. "
                      "Default: auto, that is if the model was trained on single sentences, since it would translate "
                      "only the first of several; never if --long_input does not split.")  # fmt: skip
    flags.DEFINE_enum("on_error", "stop", ["stop", "skip"], "Lines that cannot be translated (not UTF-8, or too long "
                      "with --long_input=refuse): stop, or leave their outputs empty.")  # fmt: skip
    flags.DEFINE_enum("n_best_format", "text", ["text", "json"], "text: the outputs of a line, separated by tabs; "
                      "json: one line of JSON per input line, with tokens and their scores.")  # fmt: skip
    flags.DEFINE_path("prefix_file", "", "File with the beginning of each line's output.")
    flags.DEFINE_path("alignments_file", "", "Where to write word alignments, 0-0 1-2 …, one line per input line.")
    for teller in flag_checks.TOLD.values():
        flags.DEFINE_path(teller.flag, "", teller.help)
    flags.DEFINE_enum("mbr", None, ["chrf", "bleu"], "Sample num_samples=32 outputs per line, and write the one that "
                      "is most similar to the others by this measure (minimum Bayes risk).")  # fmt: skip
    flags.DEFINE_path("score_file", "", "File of lines input<TAB>target: write the mean loss per target piece of each.")
    flags.DEFINE_string("tune", "", "Try beam_size=1,4,8;alpha=0,0.6,1 (or another such grid) on a dev set: "
                        "--decode_from_file and --decode_reference, or the problem's records.")  # fmt: skip
    flags.values["tune"].boolean = True  # --tune without a value is the grid above
    flags.DEFINE_path("features_file", "", "Where to write an encoder's hidden states of --decode_from_file, as .npz.")
    _trained.define_features_flags(flags)
    flags.DEFINE_bool("eval_use_test_set", False, "Decode the problem's test records, not the dev ones.")
    flags.DEFINE_bool("keep_timestamp", False, "Give the output file the checkpoint's time.")
    flags.DEFINE_integer("decode_shards", 1, "Number of commands that share the input; this one has part --worker_id.",
                         limits=SHARDS)  # fmt: skip
    flags.DEFINE_integer("worker_id", 0, "The part of this command, from 0, of --decode_shards.", 0, SHARDS.most - 1)
    flags.no_effect("decode_in_memory", "outputs go to a file or to standard output; in Python: "
                    "t2t_lite.Translator.load(output_dir).translate(texts)", is_bool=True)  # fmt: skip
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for mistakes that can be seen without imports."""
    _trained.check(flags)
    asked = flag_checks.asked(flags)
    if flags.decode_shards == 1 and "shards" not in flags.decode_hparams:
        _app.require_files(flags, *(name for name in flag_checks.INPUTS if flags[name].value != "-"))
    # The outputs of records get names that end in .decodes, in a folder that is made for them.
    outputs = ["decode_to_file"] * (asked.mode != "records") + [*flag_checks.LINE_FILES]
    _app.require_folders(flags, *outputs, "features_file")
    _app.refuse_packed(flags, *outputs)


def run(flags):
    """Runs the chosen mode."""
    check_tokenization(flags)
    features = _trained.features_options(flags)
    asked = flag_checks.asked(flags).of_model(_trained.find(flags))
    job = _job(asked)
    from t2t_lite.corpora.catalogs import is_catalog
    from t2t_lite.data.problem import DatasetSplit
    from t2t_lite.decoding.command import decode_files, decode_records, tuning

    split = DatasetSplit.TEST if asked["eval_use_test_set"] else DatasetSplit.EVAL
    source, output, reference = asked["decode_from_file"], asked["decode_to_file"], asked["decode_reference"]
    match asked.mode:
        case "tune":
            print("\n".join(tuning.tune_search(job, asked["tune"], split, source, reference)))
        case "decode_interactive":
            decode_files.interact(job)
        case "score_file":
            decode_files.score_file(job, asked["score_file"], output or "-")
        case "features_file":
            from t2t_lite.decoding.command.features import write_features

            write_features(job, source, asked["features_file"], **features)
        case "decode_from_file" if is_catalog(source):
            from t2t_lite.decoding.command.decode_catalogs import translate_catalog

            beside = [f"--{name}" for name in ("decode_reference", "prefix_file") if asked[name]]
            translate_catalog(job, source, output, beside)
        case "decode_from_file":
            decode_files.translate_file(job, source, output, reference, asked["prefix_file"])
        case "records":
            decode_records.translate_records(job, split, output)
        case "stream":
            decode_files.translate_stdin(job, output or "-")


def _job(asked):
    """Returns the DecodingJob of an `Asked`."""
    from t2t_lite.decoding.command.job import DecodingJob
    from t2t_lite.training.distribution import choose_devices

    where = asked.given("worker_gpu", "logical_cpus")
    devices, description = choose_devices(**where)
    if where:
        _LOGGER.info(description)
    told = {name: asked[teller.flag] for name, teller in flag_checks.TOLD.items() if asked[teller.flag]}
    options = asked.given(
        "data_dir", "long_input", "split_sentences", "on_error", "n_best_format", "mbr", "tokenization",
        "alignments_file", "keep_timestamp", "compute_dtype",
    )  # fmt: skip
    inputs = {f"--{name}": asked[name] for name in flag_checks.INPUTS}
    return DecodingJob(asked.runs, asked.settings, devices=devices, told_files=told, inputs=inputs, **options)


main = _app.command("t2t-decoder", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
