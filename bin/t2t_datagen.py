"""Writes the vocabulary and the records of a problem, which the trainer reads.

    t2t-datagen --problem=translate_ende_phrasebook --data_dir=data
    t2t-datagen --problem=translate_own --data_dir=data --train_files=a.en,a.de --dev_files=b.en,b.de --vocab_size=8000
    t2t-datagen --inspect --problem=translate_own --data_dir=data --hparams_set=transformer_big

Over finished data it does nothing. A run that was stopped is started again by the same command. --inspect generates
nothing: it shows what is there.
"""

import os
import sys

from t2t_lite.bin import _app
from t2t_lite.errors import UserError
from t2t_lite.ranges import COUNT, PAIRS, SEED, VOCAB_SIZE, Range

_OWN_FLAGS = (
    "train_files", "dev_files", "test_files", "languages", "corpus_weights", "filters", "held_out", "vocab_size",
    "target_vocab_size", "vocab_type", "vocab_from", "user_defined_symbols", "max_samples_for_vocab",
)  # fmt: skip

# Each process takes some 600 MB.
_WORKERS = Range(1, max(16, 2 * (os.cpu_count() or 1)))


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_string("problem", None, "What to generate: a name, a comma list, or a prefix ending in *.")
    flags.DEFINE_path("data_dir", None, "Folder to write vocabulary and records to.")
    flags.DEFINE_path("tmp_dir", "/tmp/t2t_datagen", "Folder of downloads and source files.")
    flags.DEFINE_paths(
        "train_files",
        [],
        "translate_own: the training corpora, each inputs,targets (.gz, .bz2, .xz) or a .tsv: a.en,a.de,b.tsv. "
        "parsing_english_own: one file of bracketed trees.",
    )
    flags.DEFINE_paths("dev_files", [], "Likewise, to evaluate on while training; translate_own: or see --held_out.")
    flags.DEFINE_paths("test_files", [], "Likewise, for the end; may be left out.")
    flags.DEFINE_list("languages", [], "translate_own: of inputs,targets, such as en,de; from the files' endings.")
    flags.DEFINE_list(
        "corpus_weights",
        [],
        "translate_own: one weight per training corpus (default 1), how often each of its pairs occurs: 2.5 is twice, "
        "and half of them once more; 0.3 is 30 % of them.",
    )
    flags.DEFINE_list(
        "filters",
        [],
        "translate_own: of the training corpora: too_long=1000,length_ratio=3,copied,wrong_script,duplicate, or all. "
        "None when left out.",
    )
    flags.DEFINE_integer(
        "held_out",
        None,
        "translate_own without --dev_files: training pairs to evaluate on instead, 1000.",
        limits=PAIRS,
    )
    flags.DEFINE_integer(
        "vocab_size",
        None,
        "translate_own: pieces of the shared vocabulary, 32000 when left out. parsing_english_own: of the words, 8000.",
        limits=VOCAB_SIZE,
    )
    flags.DEFINE_integer(
        "target_vocab_size", None, "translate_own: pieces of a vocabulary of the targets' own.", limits=VOCAB_SIZE
    )
    flags.DEFINE_enum(
        "vocab_type",
        None,
        ["subwords", "byte_level_bpe"],
        "translate_own: what to learn: SentencePiece's pieces, or byte-level BPE as GPT-2's. Default: subwords.",
    )
    flags.DEFINE_paths(
        "vocab_from",
        [],
        "translate_own: an existing vocabulary: a SentencePiece .model, vocab.json (merges.txt beside it), vocab.txt, "
        "two (inputs,targets), a data_dir, or the output_dir of a model to go on training.",
    )
    flags.DEFINE_list("user_defined_symbols", [], "translate_own: symbols that are always one piece, such as <2de>.")
    flags.DEFINE_integer(
        "max_samples_for_vocab", None, "translate_own: pairs the vocabulary is learned from, 2000000.", limits=PAIRS
    )
    flags.DEFINE_bool(
        "inspect",
        False,
        "Generate nothing; show finished data: counts, examples, vocabulary, lengths (also as <problem>-lengths.png), "
        "and the batches that --hparams_set makes of them.",
    )
    flags.DEFINE_string("hparams_set", "transformer_base", "With --inspect: name of the hyperparameter set.")
    flags.DEFINE_string("hparams", "", "With --inspect: changes to the set: name=value,name=value.")
    flags.DEFINE_list("exclude_problems", [], "Leave out problems whose name contains one of these.")
    flags.DEFINE_bool("only_list", False, "Print the names of the selected problems and stop.")
    flags.DEFINE_integer("max_cases", 0, "Largest number of examples in a split; 0: all.", limits=COUNT)
    flags.DEFINE_integer("random_seed", 429459, "Seed of all that is drawn; equal seeds give equal files.", limits=SEED)
    flags.DEFINE_integer("num_workers", None, "Processes that encode; default: one per core.", limits=_WORKERS)
    flags.DEFINE_string("runner", None, "Use Apache Beam: DirectRunner, FlinkRunner, SparkRunner, DataflowRunner.")
    flags.DEFINE_string("beam_pipeline_options", "", "Beam's own options: name=value,name=value; a name for a switch.")
    flags.DEFINE_path("t2t_usr_dir", None, "Your own folder with an __init__.py, imported for what it registers.")
    flags.DEFINE_bool("registry_help", False, "Print every registered model, hyperparameter set and problem, and stop.")
    flags.not_yet("num_shards", 0, "Set dataset_splits in the problem.")
    for name in ("task_id", "task_id_start", "task_id_end"):
        flags.not_yet(name, -1, "A problem is generated as a whole.")
    flags.no_effect("num_concurrent_processes", "use --num_workers")


def check(flags):
    """Raises `UserError` for a mistake that needs no import to be seen."""
    _app.require(flags, "problem", *(["data_dir"] if not flags.only_list else []))
    if flags.inspect and (wrong := [f"--{name}" for name in _OWN_FLAGS if flags[name].present]):
        raise UserError(f"{', '.join(wrong)}: not with --inspect, which shows what --data_dir holds. Leave it out.")
    if not flags.inspect and (wrong := [f"--{name}" for name in ("hparams_set", "hparams") if flags[name].present]):
        raise UserError(f"{', '.join(wrong)}: for --inspect only; the data are the same for all sets. Leave it out.")
    if flags.beam_pipeline_options and not flags.runner:
        raise UserError("--beam_pipeline_options: only with --runner, which says who runs the pipeline.")


def run(flags):
    """Generates the selected problems, one after the other, or shows their data."""
    from t2t_lite.data.beam_pipeline import parse_options
    from t2t_lite.data.named_problems import generate_problems, select_problems

    beam = parse_options(flags.runner, flags.beam_pipeline_options) if flags.runner else None
    names = select_problems(flags.problem, flags.exclude_problems, keeps_suffix=flags.inspect)
    if flags.only_list:
        print("\n".join(names))
        return
    data_dir = os.path.normpath(flags.data_dir) if "://" not in flags.data_dir else flags.data_dir
    if flags.inspect:
        return _inspect(names, data_dir, flags)
    generate_problems(
        names,
        data_dir,
        flags.tmp_dir,
        {name: flags[name].value for name in _OWN_FLAGS if flags[name].present},
        random_seed=flags.random_seed,
        max_cases=flags.max_cases,
        num_workers=flags.num_workers,
        beam=beam,
    )


def _inspect(names, data_dir, flags):
    from t2t_lite import registry
    from t2t_lite.data.inspection import inspect_data

    hparams = registry.hparams(flags.hparams_set).parse(flags.hparams)
    set_name = flags.hparams_set + (f" with {flags.hparams}" if flags.hparams else "")
    for name in names:
        for paragraph in inspect_data(registry.problem(name), data_dir, hparams, set_name):
            print(f"{paragraph}\n", flush=True)


def main(argv=None):
    """Entry point of the command; returns the exit status."""
    return _app.main("t2t-datagen", define_flags, run, argv, check=check)


if __name__ == "__main__":
    sys.exit(main())
