"""`translate_own`: the user's own corpora, in one command and without writing Python.

    t2t-datagen --problem=translate_own --train_files=a.en,a.de --vocab_size=8000 --data_dir=D

`D/problem.json` stores everything that was asked for, so that later commands need only `--data_dir=D`.
docs/own_corpora.md has every flag.
"""

import itertools
import logging
import os
import types

from t2t_lite import files, registry
from t2t_lite.console import Progress
from t2t_lite.corpora import plain_text, tables, tmx
from t2t_lite.corpora.filters import PairFilter, pair_hash
from t2t_lite.corpora.held_out import find_bound, is_held_out
from t2t_lite.data import own_files
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit, TranslateProblem
from t2t_lite.errors import UserError
from t2t_lite.problems import own_flags
from t2t_lite.problems.own_vocabulary import OwnVocabulary
from t2t_lite.problems.vocabulary_sources import count_pieces

_LOGGER = logging.getLogger("t2t_lite")
_SIDES = ("inputs", "targets")


@registry.register_problem
class TranslateOwn(OwnVocabulary, TranslateProblem):
    """Parallel corpora given as files: see `configure`. Once generated, everything is read from the data folder."""

    config_filename = "problem.json"
    _CONFIG = types.MappingProxyType({**OwnVocabulary._CONFIG, **own_flags.REMEMBERED, **own_files.TABLES})
    example_flags = "--train_files=a.en,a.de"

    def configure(
        self,
        train_files=(),
        dev_files=(),
        test_files=(),
        languages=(),
        corpus_weights=(),
        filters=(),
        held_out=None,
        vocab_size=None,
        target_vocab_size=None,
        vocab_type=None,
        vocab_from=(),
        user_defined_symbols=(),
        max_samples_for_vocab=None,
        columns=(),
        header=None,
    ):
        """Sets what to generate from; the arguments are t2t-datagen's flags of these names.

        Args:
            train_files: paths of the training corpora. A corpus is two files of parallel lines, inputs first, one
                `.tsv` file of two columns, or one `.tmx` file, of which the languages are read. Each may be compressed
                (`.gz`, `.bz2`, `.xz`).
            dev_files: likewise; evaluated while training. Left out: pairs of the training corpora are held out.
            test_files: likewise; may be left out.
            languages: of inputs and targets, such as ("en", "de"); left out: the endings of the training files.
            corpus_weights: numbers or strings, one per training corpus: how often each of its pairs occurs in one pass
                over the data. 2.5 is twice, and once more for half of them; 0.3 is 30 % of them. Left out: 1 each.
            filters: words as `t2t_lite.corpora.filters.parse_filters` takes them; for the training corpora alone.
            held_out: int, about how many pairs are held out, at most a tenth; None: 1000. Not with `dev_files`.
            vocab_size: size of the vocabulary, which both languages share; None: 32000.
            target_vocab_size: size of a separate vocabulary of the targets; `vocab_size` is then that of the inputs.
            vocab_type: "subwords" (SentencePiece; also None) or "byte_level_bpe": the kind of vocabulary to learn.
            vocab_from: an existing vocabulary: see `vocabulary_sources.find_vocabularies`.
            user_defined_symbols: strings without spaces that are always one piece.
            max_samples_for_vocab: int, pairs that the vocabulary is learned from; None: 2 million.
            columns: of `.tsv` files, the two that are read: numbers from 1, or names in their first lines.
            header: bool, whether the first line of a `.tsv` file names the columns. None: a line that looks like it is
                refused.

        Raises:
            UserError: a flag is missing, malformed or contradicts another, or a file does not exist.
        """
        given = {DatasetSplit.TRAIN: train_files, DatasetSplit.EVAL: dev_files, DatasetSplit.TEST: test_files}
        if not train_files:
            raise UserError(
                "translate_own: missing --train_files. Expected the corpus to learn from: --train_files=a.en,a.de or "
                "--train_files=a.tsv."
            )
        groups = {split: own_flags.group_files(split, paths) for split, paths in given.items()}
        described = {split: own_files.describe_files(split, paths) for split, paths in given.items() if paths}
        languages = own_flags.check_languages(languages, train_files)
        own_flags.check_sides(given, languages)
        if (columns or header is not None) and ".tsv" not in map(own_flags.kind, itertools.chain(*given.values())):
            raise UserError("--columns, --header: for .tsv files alone, and there is none. Leave them out.")
        tables.Layout(_SIDES, tuple(columns), header).check()
        vocabulary = own_flags.check_vocabulary(
            languages,
            vocab_size,
            target_vocab_size,
            vocab_type,
            vocab_from,
            user_defined_symbols,
            max_samples_for_vocab,
        )
        self.remember(
            {
                "format": 2,
                "problem": self.name,
                "languages": languages,
                **vocabulary,
                "files": described,
                "corpus_weights": own_flags.check_weights(corpus_weights, len(groups[DatasetSplit.TRAIN])),
                "filters": own_flags.check_filters(filters, languages),
                "held_out": own_flags.check_held_out(held_out, dev_files),
                "columns": list(columns) or None,
                "header": header,
            }
        )
        own_flags.warn_of_other_languages(given, languages)

    def hold_vocabularies(self, folder, languages, vocabularies, ending):
        """Writes vocabularies into a folder without corpora, for a model that was trained elsewhere.

        Args:
            folder: str, which exists.
            languages: (of inputs, of targets).
            vocabularies: {"inputs": bytes, "targets": bytes}: the contents of files; equal: one vocabulary for both.
            ending: str, of these files: ".model" or ".subwords".

        Raises:
            UserError: not such a vocabulary, or not two languages.
        """
        import tensorflow as tf

        is_shared = vocabularies["inputs"] == vocabularies["targets"]
        sources = {side: os.path.join(folder, f"{'inputs' if is_shared else side}{ending}") for side in vocabularies}
        for side, path in sources.items():
            files.write_bytes(path, vocabularies[side])
        self.remember(
            {
                "format": 2,
                "problem": self.name,
                "languages": own_flags.check_languages(languages, ()),
                "vocab_size": count_pieces(sources["inputs"]),
                "target_vocab_size": None if is_shared else count_pieces(sources["targets"]),
                "vocab_from": sources,
                "files": {},
            }
        )
        self.get_or_create_vocab(folder, None)
        for path in set(sources.values()):
            tf.io.gfile.remove(path)
        taken = {side: os.path.basename(path) for side, path in self.vocab_filenames.items()}
        self.remember({**self.config, "vocab_from": taken})
        files.write_json(os.path.join(folder, self.config_filename), self.config)

    # What is remembered. Format 1 of problem.json has only languages, vocab_size and files.

    def _recall(self, key):
        return self.config.get(key) or None

    @property
    def language_pair(self):
        """The languages, once the data folder has been read; None before."""
        languages = (self._config or {}).get("languages")
        return tuple(languages) if languages else None

    @property
    def approx_target_vocab_size(self):
        """The size of the targets' own vocabulary; None: both sides share one."""
        return self._recall("target_vocab_size")

    @property
    def additional_reserved_tokens(self):
        """The user's own symbols, a tuple."""
        return tuple(self._recall("user_defined_symbols") or ())

    @property
    def dataset_splits(self):
        """The splits that have files, and one shard of what is held out; see `OwnFiles.dataset_splits`."""
        splits = super().dataset_splits
        if self._recall("held_out"):
            splits.insert(1, {"split": DatasetSplit.EVAL, "shards": 1})
        return splits

    def bytes_of(self, split):
        """Returns the size of a split's text; in training, each corpus counts as often as it is read."""
        if split != DatasetSplit.TRAIN:
            return super().bytes_of(split)
        sizes = {facts["path"]: facts["bytes"] for facts in self.files_of(split)}
        return sum(weight * sum(sizes[path] for path in paths) for paths, weight in self._weighted_corpora())

    def generation_settings(self):
        """Returns everything that was asked for; a change is refused over finished data."""
        first = ("languages", "vocab_size", "target_vocab_size", "user_defined_symbols")
        last = ("corpus_weights", "filters", "held_out")
        return {
            **{key: self._recall(key) for key in first},
            **super().generation_settings(),
            **{key: self._recall(key) for key in last},
            **{key: self.config[key] for key in own_files.TABLES if self.config.get(key) is not None},
        }

    # Generation.

    def prepare_generation(self, data_dir, tmp_dir):
        """Reads all files once, so that a bad line is found before any work; then makes the vocabulary."""
        self._warn_of_equal_sides()
        for split in self.config["files"]:
            progress = Progress(f"{self.name}: reading {FILE_TAGS[split]}", "pairs")
            if split == DatasetSplit.TRAIN and self._recall("held_out"):
                self._draw_held_out(progress.watch(self._training_pairs()))
            else:
                for _ in progress.watch(self._read_files(split)):
                    pass
            progress.done()
        super().prepare_generation(data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Returns an iterator of a split's pairs: those of its files, or those that are held out."""
        self.read_config(data_dir)
        is_drawn = dataset_split == DatasetSplit.EVAL and self._recall("held_out")
        if dataset_split != DatasetSplit.TRAIN and not is_drawn:
            return self._read_files(dataset_split)
        if self._recall("held_out") and "held_out_below" not in self.config:
            self._draw_held_out(self._training_pairs())
        return self._training_pairs(dataset_split)

    def _warn_of_equal_sides(self):
        for split in self.config["files"]:
            contents = {facts["path"]: facts.get("sha256") for facts in self.files_of(split)}
            for paths in self._corpora(split):
                if len(paths) == 2 and contents[paths[0]] and contents[paths[0]] == contents[paths[1]]:
                    _LOGGER.warning(
                        f"--{own_files.FLAGS[split]}: {paths[0]} and {paths[1]} have the same text. Expected inputs, "
                        "and their translation."
                    )

    def _corpora(self, split):
        """Returns the [path, …] of each corpus of a split."""
        return own_flags.group_files(split, [facts["path"] for facts in self.files_of(split)])

    def _weighted_corpora(self):
        paths = self._corpora(DatasetSplit.TRAIN)
        return list(zip(paths, self._recall("corpus_weights") or [1.0] * len(paths), strict=True))

    def _read_files(self, split):
        return itertools.chain.from_iterable(map(self._read_corpus, self._corpora(split)))

    def _read_corpus(self, paths, counts=True):
        """Yields the pairs of a corpus; what it leaves out is counted, unless that is done for another split."""
        removed = self.removed if counts else None
        on_bad_line = self.on_bad_line if counts or not self.skip_bad_lines else _ignore
        match own_flags.kind(paths[0]) if len(paths) == 1 else "":
            case ".tmx":
                return tmx.read_pairs(paths[0], self.language_pair, removed, on_bad_line)
            case ".tsv":
                layout = tables.Layout(
                    _SIDES, tuple(self._recall("columns") or ()), self.config.get("header"), self.language_pair
                )
                return tables.read_pairs(paths[0], layout, on_bad_line)
        return plain_text.read_pairs(*paths, on_bad_line)

    def _training_pairs(self, part=None):
        """Yields the pairs that pass the filters: for training, held out (EVAL), or, by default, all of them once."""
        bound = self.config["held_out_below"] if part and self._recall("held_out") else 0
        wanted = self._recall("filters") or {}
        if part == DatasetSplit.EVAL:
            wanted = {**wanted, "duplicate": True}
        stays = PairFilter(wanted, self.language_pair, self.removed)
        for number, (paths, weight) in enumerate(self._weighted_corpora()):
            purpose = f"weight {self.random_seed} {number}"
            pairs = self._read_corpus(paths, counts=part != DatasetSplit.EVAL)
            if weight < 1:
                pairs = _repeated(pairs, weight, purpose)
            if bound:
                pairs = _on_side(pairs, part == DatasetSplit.EVAL, bound, self.random_seed)
            pairs = stays(pairs)
            yield from _repeated(pairs, weight, purpose) if weight > 1 and part == DatasetSplit.TRAIN else pairs

    def _draw_held_out(self, pairs):
        """Decides which pairs are held out. Raises `UserError` if none would be left to train on."""
        asked = self._recall("held_out")
        bound, count = find_bound(pairs, asked, self.random_seed)
        if bound == 2**64:
            raise UserError(
                f"{self.name}: no pair would be left to train on, with some held out: {count:,} different ones are "
                "in the training corpora, after filters. Expected more, or --dev_files."
            )
        self.config["held_out_below"] = bound
        _LOGGER.info(
            f"{self.name}: {count:,} pairs of the training corpora are held out for evaluation (--held_out={asked}, at "
            "most a tenth); no pair with the same inputs is trained on"
        )


def _repeated(pairs, weight, purpose):
    """Yields each pair `weight` times; for the fraction, the pair's hash decides."""
    times = int(weight)
    below = (weight - times) * 2**64
    for pair in pairs:
        yield from itertools.repeat(pair, times + (below > 0 and pair_hash(pair, purpose) < below))


def _ignore(message):
    """Leaves a line out that another split counts."""


def _on_side(pairs, side, bound, seed):
    return (pair for pair in pairs if is_held_out(pair, bound, seed) == side)
