"""Flags of t2t-datagen for problems on the user's own files."""

from t2t_lite.ranges import MASK_RATE, MASK_UNITS, PAIRS, SEQUENCE_LENGTH, VOCAB_SIZE

OWN_FLAGS = (
    "train_files", "dev_files", "test_files", "languages", "corpus_weights", "filters", "held_out", "vocab_size",
    "target_vocab_size", "vocab_type", "vocab_from", "user_defined_symbols", "max_samples_for_vocab", "sequence_length",
    "doc_stride", "mask_rate", "mask_unit", "phrase_file", "columns", "header",
)  # fmt: skip


def define_own_flags(flags):
    """Declares the flags of `OWN_FLAGS`, which are arguments of the problems' `configure`."""
    flags.DEFINE_paths(
        "train_files",
        [],
        "translate_own: the training corpora, each inputs,targets (.gz, .bz2, .xz), a .tsv or a .tmx: a.en,a.de,b.tsv. "
        "parsing_english_own: one file of bracketed trees. languagemodel_own, masked_lm_own: texts; next_sentence_own, "
        "sentence_order_own: a sentence per line, a blank line between documents. classify_own, "
        "classify_pair_own, regress_own, regress_pair_own: lines of label<TAB>text, label<TAB>first<TAB>second. "
        "tag_own: CoNLL's or CoNLL-U's columns. qa_own: SQuAD's JSON.",
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
        "translate_own: of the training corpora: too_long=1000,length_ratio=3,copied,wrong_script,mojibake,duplicate, "
        "or all. None when left out.",
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
        "translate_own: pieces of the shared vocabulary, languagemodel_own: of the vocabulary, 32000 when left out. "
        "parsing_english_own: of the words, 8000.",
        limits=VOCAB_SIZE,
    )
    flags.DEFINE_integer(
        "target_vocab_size", None, "translate_own: pieces of a vocabulary of the targets' own.", limits=VOCAB_SIZE
    )
    flags.DEFINE_enum(
        "vocab_type",
        None,
        ["subwords", "byte_level_bpe"],
        "What to learn: SentencePiece's pieces, or byte-level BPE as GPT-2's. Default: subwords; of languagemodel_own "
        "byte-level BPE, which keeps all white space.",
    )
    flags.DEFINE_paths(
        "vocab_from",
        [],
        "All but parsing_english_own: an existing vocabulary: a SentencePiece .model, vocab.json (with merges.txt), "
        "vocab.txt, two (inputs,targets), a data_dir, or the output_dir of a model to train further.",
    )
    flags.DEFINE_list("user_defined_symbols", [], "translate_own: symbols that are always one piece, such as <2de>.")
    flags.DEFINE_integer(
        "max_samples_for_vocab",
        None,
        "translate_own: pairs the vocabulary is learned from, 2000000. languagemodel_own: thousands of characters, "
        "100000.",
        limits=PAIRS,
    )
    flags.DEFINE_integer(
        "sequence_length",
        None,
        "languagemodel_own, masked_lm_own, next_sentence_own, sentence_order_own, qa_own: ids in a row; 1024, 511 and, "
        "of qa_own, 383 when left out.",
        limits=SEQUENCE_LENGTH,
    )
    flags.DEFINE_integer(
        "doc_stride",
        None,
        "qa_own: ids of a long context from the start of a row to that of the next one, 128.",
        limits=SEQUENCE_LENGTH,
    )
    flags.DEFINE_float(
        "mask_rate",
        None,
        "masked_lm_own, next_sentence_own, sentence_order_own: share of the ids to predict, 0.15.",
        limits=MASK_RATE,
    )
    flags.DEFINE_enum(
        "mask_unit",
        None,
        list(MASK_UNITS),
        "As --mask_rate: what is masked as a whole; phrase: see --phrase_file. Default: word.",
    )
    flags.DEFINE_list(
        "columns",
        [],
        "Of tables and CoNLL's columns: those to read, by number from 1 or by name in the first line, such as "
        "label,text, inputs,targets or FORM,XPOS. Default: the table has no others; word first, tag last.",
    )
    flags.DEFINE_bool(
        "header",
        None,
        "Whether the first line of tables names the columns; left out, one that looks like it is refused.",
    )
    flags.DEFINE_path("phrase_file", None, "With --mask_unit=phrase: a text with a phrase per line.")
