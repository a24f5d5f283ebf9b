"""Translates a file, standard input, a problem's records or typed sentences with a trained model.

A language model continues texts, and an encoder predicts labels, tags or answers.

    t2t-decoder --output_dir=train --decode_from_file=test.en --decode_to_file=test.de
    t2t-decoder --output_dir=train < test.en > test.de
    t2t-decoder --output_dir=train --decode_interactive
    t2t-decoder --output_dir=train --problem=translate_own --data_dir=data      # its dev records
    t2t-decoder --output_dir=train --score_file=pairs.tsv --decode_to_file=losses
    t2t-decoder --output_dir=train --tune --decode_from_file=dev.en --decode_reference=dev.de
    t2t-decoder --output_dir=encoder --decode_from_file=texts --features_file=features.npz

Every line of input gives one line of output, in order; an empty line stays empty. Results are written to the file or to
standard output, and progress is shown on standard error. If a command was killed, run it again to resume where it
stopped. docs/decoding.md describes all flags.
"""

import sys

from t2t_lite.bin import _app, _trained
from t2t_lite.bin._setting_flags import check_tokenization, define_tokenization
from t2t_lite.decoding.command import flag_checks
from t2t_lite.decoding.command.decode_hparams import HELP
from t2t_lite.errors import LOGGER
from t2t_lite.settings.ranges import COMPUTE_DTYPES, GPUS, LOGICAL_CPUS, SHARDS, SPLIT_SENTENCES


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_integer("worker_gpu", 1, "Number of GPUs that share the input; 1: a GPU if any, otherwise the CPU.",
                         limits=GPUS)  # fmt: skip
    flags.DEFINE_integer("logical_cpus", 0, "Number of CPU replicas that share the input, instead of GPUs; 0: off.",
                         limits=LOGICAL_CPUS)  # fmt: skip
    _trained.define_flags(flags)
    flags.DEFINE_path("decode_from_file", "", "File to translate, one sentence per line; - is standard input.")
    flags.DEFINE_path(
        "decode_to_file", "", "File for the outputs; - is standard output. Default: <input>.<model>….decodes."
    )
    flags.DEFINE_path(
        "decode_reference", "", "File with a reference translation of each line. If given, BLEU is shown at the end."
    )
    define_tokenization(flags)
    flags.DEFINE_string("decode_hparams", "", HELP)
    flags.DEFINE_enum("compute_dtype", None, COMPUTE_DTYPES, "Type of computations; bfloat16 has 8 significant bits "
                      "and is faster on CPUs with AVX512-BF16 or AMX; other CPUs use float32 instead. Default: the "
                      "type used in training.")  # fmt: skip
    flags.DEFINE_bool("decode_interactive", False, "Translate lines as they are typed; q quits.")
    flags.DEFINE_enum("long_input", None, ["split", "truncate", "refuse"], "What to do with a line that is too long "
                      "for the model: split it at sentence boundaries, truncate it, or refuse it. Default for "
                      "translation: split, but truncate if max_input_size is set. For other tasks see "
                      "docs/decoding.md.")  # fmt: skip
    flags.DEFINE_enum("split_sentences", None, SPLIT_SENTENCES, "Whether to translate the sentences of a line one by "
                      "one. Default: auto, which splits lines if the model was trained on single sentences, because "
                      "such a model translates only a line's first sentence. With --long_input=truncate or refuse, "
                      "the default is never.")  # fmt: skip
    flags.DEFINE_enum("on_error", "stop", ["stop", "skip"], "What to do with a line that cannot be translated "
                      "(invalid UTF-8, or too long with --long_input=refuse): stop, or skip the line and leave its "
                      "output empty.")  # fmt: skip
    flags.DEFINE_enum("n_best_format", "text", ["text", "json"], "Format of several outputs per line. text: separated "
                      "by tabs; json: one line of JSON per input line, with tokens and their scores.")  # fmt: skip
    flags.DEFINE_path("prefix_file", "", "File of prefixes, one per input line, with which the outputs must begin.")
    flags.DEFINE_path("alignments_file", "", "File for word alignments, such as 0-0 1-2, one line per input line.")
    for teller in flag_checks.TELLERS.values():
        flags.DEFINE_path(teller.flag, "", teller.help)
    flags.DEFINE_enum("mbr", None, ["chrf", "bleu"], "Minimum Bayes risk decoding: sample num_samples=32 outputs per "
                      "line and write the output that this measure finds most similar to the others.")  # fmt: skip
    flags.DEFINE_path(
        "score_file",
        "",
        "File of lines input<TAB>target. Instead of decoding, write each line's mean loss per target piece.",
    )
    flags.DEFINE_string("tune", "", "Grid of search settings to try on a dev set; without a value, "
                        "beam_size=1,4,8;alpha=0,0.6,1. The dev set is --decode_from_file and --decode_reference, or "
                        "the problem's records.")  # fmt: skip
    flags.values["tune"].boolean = True  # --tune without a value stands for the grid above
    flags.DEFINE_path("features_file", "", "File (.npz) for the hidden states that an encoder computes for each line.")
    _trained.define_features_flags(flags)
    flags.DEFINE_bool("eval_use_test_set", False, "Decode the problem's test records instead of its dev records.")
    flags.DEFINE_bool("keep_timestamp", False, "Set the output file's modification time to the checkpoint's.")
    flags.DEFINE_integer("decode_shards", 1, "Number of commands that split the input; this one decodes part "
                         "--worker_id.", limits=SHARDS)  # fmt: skip
    flags.DEFINE_integer(
        "worker_id", 0, "Number of the part that this command decodes, counted from 0; see --decode_shards.", 0,
        SHARDS.most - 1,
    )  # fmt: skip
    flags.no_effect("decode_in_memory", "outputs go to a file or to standard output; in Python: "
                    "t2t_lite.Translator.load(output_dir).translate(texts)", is_bool=True)  # fmt: skip
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for mistakes that can be found without heavy imports."""
    _trained.check(flags)
    request = flag_checks.decode_request(flags)
    if flags.decode_shards == 1 and "shards" not in flags.decode_hparams:
        inputs = [name for name in flag_checks.INPUTS if name != "decode_from_file" or flags[name].value != "-"]
        _app.require_files(flags, *inputs)
    # When records are decoded, the files' names begin with --decode_to_file, and a missing folder is created.
    outputs = ["decode_to_file"] * (request.mode != "records") + [*flag_checks.LINE_FILES]
    _app.require_folders(flags, *outputs, "features_file")
    _app.refuse_packed(flags, *outputs)


def run(flags):
    """Decodes, scores or tunes, as the flags request."""
    check_tokenization(flags)
    request = flag_checks.decode_request(flags).of_model(_trained.find(flags))
    job = _job(request)
    from t2t_lite.corpora.catalogs import is_catalog
    from t2t_lite.data.problem import DatasetSplit
    from t2t_lite.decoding.command import decode_catalogs, decode_files, decode_records, tuning

    split = DatasetSplit.TEST if request["eval_use_test_set"] else DatasetSplit.EVAL
    source, output, reference = request["decode_from_file"], request["decode_to_file"], request["decode_reference"]
    match request.mode:
        case "tune":
            print("\n".join(tuning.tune_search(job, request["tune"], split, source, reference)))
        case "decode_interactive":
            decode_files.interact(job)
        case "score_file":
            decode_files.score_file(job, request["score_file"], output or "-")
        case "features_file":
            from t2t_lite.decoding.command.features import write_features

            write_features(job, source, request["features_file"], **_trained.features_options(flags))
        case "decode_from_file":
            translate = decode_catalogs.translate_catalog if is_catalog(source) else decode_files.translate_file
            translate(job, source, output, reference, request["prefix_file"])
        case "records":
            decode_records.translate_records(job, split, output)
        case "stream":
            decode_files.translate_stdin(job, output or "-")


def _job(request):
    """Returns the DecodingJob for the checked flags, a `DecodeRequest`."""
    from t2t_lite.decoding.command.job import DecodingJob
    from t2t_lite.training.distribution import choose_devices

    where = request.given("worker_gpu", "logical_cpus")
    devices, description = choose_devices(**where)
    if where:
        LOGGER.info(description)
    told_files = {name: request[teller.flag] for name, teller in flag_checks.TELLERS.items() if request[teller.flag]}
    options = request.given(
        "data_dir", "long_input", "split_sentences", "on_error", "n_best_format", "mbr", "tokenization",
        "alignments_file", "keep_timestamp", "compute_dtype",
    )  # fmt: skip
    inputs = {f"--{name}": request[name] for name in flag_checks.INPUTS}
    return DecodingJob(request.runs, request.settings, devices=devices, told_files=told_files, inputs=inputs, **options)


main = _app.command("t2t-decoder", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
