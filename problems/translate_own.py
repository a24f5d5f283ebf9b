"""`translate_own`: translation with the user's own corpora, with one command and without writing Python.

    t2t-datagen --problem=translate_own --train_files=a.en,a.de --vocab_size=8000 --data_dir=D

`D/problem.json` stores all settings of this command, so later commands need only `--data_dir=D`. For all flags, see
docs/own_corpora.md.
"""

import collections
import dataclasses
import functools
import itertools
import os
import re

from t2t_lite import files, registry
from t2t_lite.corpora.filters import PairFilter, find_bound, is_held_out, pair_hash, parse_filters
from t2t_lite.corpora.plain_text import kind, without_packing
from t2t_lite.corpora.scripts import is_language
from t2t_lite.corpora.source_files import TABLES, holds_both, read_corpus
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit, TranslateProblem
from t2t_lite.data.splits import FLAGS
from t2t_lite.errors import LOGGER, UserError, counted, shown
from t2t_lite.problems.own_corpus import OwnCorpus, read_pieces
from t2t_lite.problems.own_problem import kept
from t2t_lite.problems.own_settings import SENTENCEPIECE, WEIGHT, OwnSetting, own_settings
from t2t_lite.settings.ranges import Range, typed_value

_DEFAULT_HELD_OUT = 1000


@registry.register_problem
class TranslateOwn(OwnCorpus, TranslateProblem):
    """Translation with the user's own parallel corpora. After generation, only the data folder is needed."""

    config_filename = "problem.json"
    settings = own_settings(
        "format", "problem", "languages", "vocab_size", "target_vocab_size", "vocab_type", "user_defined_symbols",
        "max_samples_for_vocab", "vocab_from", *SENTENCEPIECE, "files", "corpus_weights", "filters", "held_out",
        "columns", "header", "fields", "separator",
        OwnSetting("held_out_below", int, dataclasses.MISSING, Range(0, 2**64)),
        problem="translate_own", format=2,
    )  # fmt: skip
    columns = ("inputs", "targets")
    example_flags = "--train_files=a.en,a.de"
    expected_lines = "a corpus of two parallel files or one table"
    required_splits = (DatasetSplit.TRAIN,)  # without dev files, training pairs are held out
    sample_unit = "pairs"

    def __init__(self, was_reversed=False, was_copy=False):
        super().__init__(was_reversed, was_copy)
        self._told = set()

    def check_files(self, paths):
        """See `OwnCorpus.check_files`; also raises `UserError` if a corpus lacks one of its two files."""
        super().check_files(paths)
        for split, split_paths in paths.items():
            group_files(split, split_paths)

    def _check_tables(self, values, paths):
        chooses_columns = values["columns"] or values["header"] is not None
        flags = "--columns, --header" if chooses_columns else "--separator" if values["separator"] else None
        if flags and not {*map(kind, paths)}.intersection(TABLES):
            raise UserError(f"{flags}: only for .tsv, .csv and .jsonl files, but none are given. Remove these flags.")
        super()._check_tables(values, paths)

    def check_settings(self, values, paths):
        """See `OwnCorpus.check_settings`."""
        train_files, dev_files = paths[DatasetSplit.TRAIN], paths[DatasetSplit.EVAL]
        values["languages"] = check_languages(values["languages"], train_files)
        check_sides(paths, values["languages"])
        super().check_settings(values, paths)
        values |= {name: setting.checked(values) for name, setting in self.settings.items() if setting.problems}
        num_corpora = len(group_files(DatasetSplit.TRAIN, train_files))
        values["corpus_weights"] = _check_weights(values["corpus_weights"] or (), num_corpora)
        values["filters"] = parse_filters(values["filters"] or ()) or None
        # Raises an error if the scripts of a language are unknown.
        PairFilter(values["filters"] or {}, values["languages"], collections.Counter())
        if dev_files and values["held_out"] is not None:
            raise UserError(
                f"--held_out={values['held_out']}: nothing is held out, because --dev_files are used for evaluation. "
                "Remove one of the two flags."
            )
        if not dev_files and values["held_out"] is None:
            values["held_out"] = _DEFAULT_HELD_OUT
        warn_of_other_languages(paths, values["languages"])

    def hold_vocabularies(self, folder, languages, vocabularies, ending):
        """Writes vocabularies into a folder without corpora, for a model that was trained elsewhere.

        Args:
            folder: str, an existing folder.
            languages: the codes of the languages of (inputs, targets).
            vocabularies: {"inputs": bytes, "targets": bytes}, the contents of files; if they are equal, both sides
                share one vocabulary.
            ending: str, extension of these files: ".model" or ".subwords".

        Raises:
            UserError: the files are not such vocabularies, or there are not two languages.
        """
        is_shared = vocabularies["inputs"] == vocabularies["targets"]
        sources = {side: os.path.join(folder, f"{'inputs' if is_shared else side}{ending}") for side in vocabularies}
        for side, path in sources.items():
            files.write_bytes(path, vocabularies[side])
        languages = check_languages(languages, ())
        target_size = None if is_shared else len(read_pieces(sources["targets"]))
        self.hold_vocabulary(folder, sources, format=2, languages=languages, target_vocab_size=target_size)
        for path in set(sources.values()):
            files.remove(path)

    # Methods for the stored configuration.

    def _read_file(self, path):
        config = super()._read_file(path)
        for key in config.keys() - {*self.settings, "skip_bad_lines"}:
            if config[key]:
                raise UserError(
                    f"{path}: unknown setting {shown(key)}. Install the extra or the later version of t2t_lite that "
                    "wrote this folder."
                )
        return config

    def _recall(self, key):
        return self.config.get(key) or None

    @property
    def language_pair(self):
        """The languages of inputs and targets, or None if the data folder has not been read yet."""
        languages = (self._config or {}).get("languages")
        return tuple(languages) if languages else None

    approx_target_vocab_size = kept(
        "target_vocab_size", "The size of the targets' own vocabulary, or None if both sides share one vocabulary."
    )

    @property
    def additional_reserved_tokens(self):
        """A tuple of the user-defined symbols and the symbols of the `substitution`."""
        symbols = self.substitution.symbols if self.substitution else ()
        return (*(self._recall("user_defined_symbols") or ()), *symbols)

    @property
    def substitution(self):
        """The substitution that a setting of an extra defines, or None; see `Problem.substitution`."""
        offers = (setting.substitution((self._config or {}).get(name)) for name, setting in self.settings.items())
        return next(filter(None, offers), None)

    @property
    def dataset_splits(self):
        """The splits that have files, and a dev set of one shard for held-out pairs; see `OwnCorpus.dataset_splits`."""
        splits = super().dataset_splits
        if self._recall("held_out"):
            splits.insert(1, {"split": DatasetSplit.EVAL, "shards": 1})
        return splits

    def bytes_of(self, split):
        """Returns the size of a split's text in bytes; each training corpus counts as many times as its weight says."""
        if split != DatasetSplit.TRAIN:
            return super().bytes_of(split)
        sizes = {facts["path"]: facts["bytes"] for facts in self.files_of(split)}
        return sum(weight * sum(sizes[path] for path in paths) for paths, weight in self._weighted_corpora())

    def generation_settings(self):
        """See `OwnCorpus.generation_settings`."""
        return {"vocab_size": self._recall("vocab_size"), **super().generation_settings()}

    # Generation.

    def check_corpus(self, data_dir, tmp_dir):
        """See `OwnCorpus.check_corpus`; also selects the held-out pairs."""
        self._warn_of_equal_sides()
        super().check_corpus(data_dir, tmp_dir)

    def check_split(self, split, watch, data_dir, tmp_dir):
        """See `OwnCorpus.check_split`; all pairs are read, regardless of the weights."""
        if split == DatasetSplit.TRAIN and self._recall("held_out"):
            self._choose_held_out(watch(self._training_pairs()))
        else:
            for _ in watch(self._read_files(split)):
                pass

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Returns an iterator of a split's pairs, from its files or from the held-out pairs."""
        self.read_config(data_dir)
        is_drawn = dataset_split == DatasetSplit.EVAL and self._recall("held_out")
        if dataset_split != DatasetSplit.TRAIN and not is_drawn:
            pairs = self._read_files(dataset_split)
        else:
            if self._recall("held_out") and "held_out_below" not in self.config:
                self._choose_held_out(self._training_pairs())
            pairs = self._training_pairs(dataset_split)
        if not self.substitution:
            return pairs
        is_training = dataset_split == DatasetSplit.TRAIN
        tell = functools.partial(self._tell_once, f"{self.name}: {FILE_TAGS[dataset_split]}")
        return self.substitution.pairs(pairs, is_training, tell)

    def _tell_once(self, subject, message):
        """Logs a message only in the first pass over a split, since the vocabulary needs another pass."""
        if subject not in self._told:
            self._told.add(subject)
            LOGGER.info(f"{subject}: {message}")

    def _warn_of_equal_sides(self):
        for split in self.config["files"]:
            contents = {facts["path"]: facts.get("sha256") for facts in self.files_of(split)}
            for paths in self._corpora(split):
                if len(paths) == 2 and contents[paths[0]] and contents[paths[0]] == contents[paths[1]]:
                    LOGGER.warning(
                        f"--{FLAGS[split]}: {paths[0]} and {paths[1]} have the same text. Expected inputs and their "
                        "translations."
                    )

    def _corpora(self, split):
        """Returns, for each corpus of a split, the list of its one or two paths."""
        return group_files(split, [facts["path"] for facts in self.files_of(split)])

    def _weighted_corpora(self):
        paths = self._corpora(DatasetSplit.TRAIN)
        return list(zip(paths, self._recall("corpus_weights") or [1.0] * len(paths), strict=True))

    def _read_files(self, split):
        return itertools.chain.from_iterable(map(self._read_corpus, self._corpora(split)))

    def _read_corpus(self, paths, counts=True):
        """Yields the pairs of a corpus; `counts` is False if another split already counts the skipped pairs."""
        removed = self.removed if counts else None
        on_bad_line = self.on_bad_line if counts or not self.skip_bad_lines else _ignore
        return read_corpus(paths, self.layout, self.language_pair, removed, on_bad_line)

    def _training_pairs(self, part=None):
        """Yields the pairs that pass the filters: training pairs, held-out pairs (EVAL) or all pairs once."""
        bound = self.config["held_out_below"] if part and self._recall("held_out") else 0
        thresholds = self._recall("filters") or {}
        if part == DatasetSplit.EVAL:
            thresholds = {**thresholds, "duplicate": True}
        stays = PairFilter(thresholds, self.language_pair, self.removed)
        for number, (paths, weight) in enumerate(self._weighted_corpora()):
            purpose = f"weight {self.random_seed} {number}"
            pairs = self._read_corpus(paths, counts=part != DatasetSplit.EVAL)
            if weight < 1:
                pairs = _repeated(pairs, weight, purpose)
            if bound:
                pairs = _on_side(pairs, part == DatasetSplit.EVAL, bound, self.random_seed)
            pairs = stays(pairs)
            yield from _repeated(pairs, weight, purpose) if weight > 1 and part == DatasetSplit.TRAIN else pairs

    def _choose_held_out(self, pairs):
        """Selects the pairs to hold out. Raises `UserError` if no pair would be left for training."""
        most = self._recall("held_out")
        bound, count = find_bound(pairs, most, self.random_seed)
        if bound == 2**64:
            raise UserError(
                f"{self.name}: holding out pairs for evaluation would leave no pair for training, since the training "
                f"corpora have only {counted(count, 'different pair')} after filters. Expected more pairs, or "
                "--dev_files."
            )
        self.config["held_out_below"] = bound
        LOGGER.info(
            f"{self.name}: {count:,} pairs of the training corpora are held out for evaluation (--held_out={most}, at "
            "most a tenth); pairs with the same inputs are not used in training"
        )


def _check_weights(words, num_corpora):
    """Returns the weight of each training corpus, a float, or None if all are 1. Raises `UserError`."""
    flag = f"--corpus_weights={','.join(map(str, words))}"
    if words and len(words) != num_corpora:
        raise UserError(
            f"{flag}: the number of weights is {len(words)}, but the number of training corpora is {num_corpora}. "
            "Expected one weight per corpus."
        )
    weights = [typed_value("--corpus_weights: weight", word, float, WEIGHT) for word in words]
    return weights if set(weights) - {1.0} else None


def _repeated(pairs, weight, purpose):
    """Yields each pair `weight` times; the pair's hash decides whether a fraction is rounded up or down."""
    times = int(weight)
    below = (weight - times) * 2**64
    for pair in pairs:
        yield from itertools.repeat(pair, times + (below > 0 and pair_hash(pair, purpose) < below))


def _ignore(message):
    """Ignores a bad line, because another split counts it."""


def _on_side(pairs, side, bound, seed):
    return (pair for pair in pairs if is_held_out(pair, bound, seed) == side)


def group_files(split, paths):
    """Groups a split's paths by corpus: [path] of a file or archive with both sides, or [inputs path, targets path].

    Raises `UserError`.
    """
    flag, rest, groups = f"--{FLAGS[split]}={','.join(paths)}", list(paths), []
    while rest:
        count = 1 if holds_both(rest[0]) else 2
        group, rest = rest[:count], rest[count:]
        if len(group) < count or any(map(holds_both, group[1:])):
            raise UserError(
                f"{flag}: {group[0]} has no second file for the other side (found {len(paths)}). Expected two parallel "
                "files (a.en,a.de) or one .tsv, .csv, .jsonl, .tmx or .zip file per corpus."
            )
        groups.append(group)
    return groups


def check_sides(files, languages):
    """Raises `UserError` if both files of a corpus are the same, or if the extensions are in reverse order.

    Args:
        files: {split: list of paths}.
        languages: the codes of the languages of [inputs, targets].
    """
    pairs = [(split, group) for split, paths in files.items() for group in group_files(split, paths) if len(group) == 2]
    trained_on = next((group for split, group in pairs if split == DatasetSplit.TRAIN), ())
    for split, group in pairs:
        flag = f"--{FLAGS[split]}: {','.join(group)}"
        if os.path.realpath(group[0]) == os.path.realpath(group[1]):
            raise UserError(f"{flag}: the same file is given for both sides. Expected inputs and their translations.")
        ends = [kind(path) for path in group]
        is_swapped = _names(group, languages[::-1]) and not _names(group, languages)
        has_swapped_ends = ends[0] != ends[1] and ends[::-1] == [kind(path) for path in trained_on]
        if is_swapped or has_swapped_ends:
            is_known = has_swapped_ends or _names(trained_on, languages)
            other = ",".join(trained_on) if is_known else f"--languages={','.join(languages)}"
            raise UserError(f"{flag} are in the opposite direction to {other}. Swap the two files.")


def warn_of_other_languages(files, languages):
    """Warns if the extension of a file names a third language; for the arguments, see `check_sides`."""
    for split, paths in files.items():
        for group in group_files(split, paths):
            for path, language in zip(group, languages, strict=False):  # a table has no second path
                end = kind(path)[1:]
                if is_language(end) and end not in _words(language):
                    flag = f"--{FLAGS[split]}"
                    LOGGER.warning(
                        f"{flag}: {path}: has the extension .{end}, but the language is {language}. Check the files."
                    )


def _names(paths, languages):
    """Returns whether the names of two paths differ by naming the first and the second language, in this order."""
    first, second = ({*_words(language)} for language in languages)
    differing = [pair for pair in zip(*(_words(path)[::-1] for path in paths), strict=False) if pair[0] != pair[1]]
    return any(first_word in first - second and second_word in second - first for first_word, second_word in differing)


def _words(name):
    return re.split(r"[\W_]+", without_packing(name).casefold())


def check_languages(languages, train_files):
    """Returns the languages of [inputs, targets], which by default are the files' extensions. Raises `UserError`."""
    flag = f"--train_files={','.join(train_files)}"
    pairs = [paths for paths in group_files(DatasetSplit.TRAIN, train_files) if len(paths) == 2]
    endings = [[os.path.splitext(without_packing(path))[1][1:] for path in paths] for paths in pairs]
    if languages:
        if _are_languages(languages):
            return list(languages)
        raise UserError(
            f"--languages={','.join(languages)}: expected two different codes, inputs first, such as en,de."
        )
    if endings and _are_languages(endings[0]) and all({*codes} == {*endings[0]} for codes in endings):
        return endings[0]  # `check_sides` compares the directions
    raise UserError(f"{flag}: the extensions are not two languages. Add --languages=en,de (inputs first).")


def _are_languages(codes):
    is_code = all(re.fullmatch(r"[a-z]{2,3}([-_][A-Za-z0-9]{1,8})*", code) for code in codes)
    return is_code and len(codes) == 2 and codes[0] != codes[1]
