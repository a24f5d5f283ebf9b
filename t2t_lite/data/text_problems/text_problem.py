"""Text problems, whose samples are strings that a vocabulary encodes as ids (tensor2tensor's text_problems.py)."""

import contextlib
import functools
import hashlib
import os
import types
from collections.abc import Iterable

from t2t_lite import files
from t2t_lite.corpora.plain_text import SURROGATE
from t2t_lite.corpora.reservoir import Reservoir
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.named_problems import datagen_command
from t2t_lite.data.splits import SENTENCEPIECE, DatasetSplit, VocabType, generated
from t2t_lite.errors import LOGGER, MissingFile, NotWritten, UserError, shown
from t2t_lite.text import subwords, vocabulary, vocabulary_files
from t2t_lite.text.published import byte_level_bpe


class Text2TextProblem(Problem):
    """A problem that maps a text to a text. Subclasses define `generate_samples` and `is_generate_per_split`.

    Attributes:
        text_features: names of the one or two features that are text in the samples and have a vocabulary.
        vocab_type: VocabType: `SUBWORD` (SentencePiece), `BYTE_LEVEL_BPE`, `CHARACTER` or `TOKEN`.
        approx_vocab_size: number of pieces in the shared vocabulary.
        approx_target_vocab_size: number of pieces in the targets' own vocabulary, in which case `approx_vocab_size`
            applies to the inputs. If None, both sides share one vocabulary.
        vocab_size_is_approximate: whether to learn a vocabulary of a different size if the text does not allow the
            sizes above. If False, an impossible size raises an error.
        vocab_size_is_limit: whether the text determines the size of the vocabulary, up to `approx_vocab_size`; see
            `t2t_lite.text.sentencepiece_model`.
        additional_reserved_tokens: strings that are always one piece, with the ids from 3; not supported by
            `VocabType.BYTE_LEVEL_BPE`.
        normalization, character_coverage, split_digits: how SentencePiece learns the vocabulary, see
            `t2t_lite.text.subwords.train_sentencepiece`. They do not affect other vocabulary types.
        existing_vocabularies: {"inputs": path, "targets": path}, vocabularies to use instead of learning one. They can
            be of any type in `t2t_lite.text.vocabulary_files`. If both paths are equal, the sides share a vocabulary.
        max_samples_for_vocab: number of samples, chosen uniformly, from which a vocabulary is learned. If None, all
            samples are used.
        use_vocab_from_other_problem: another problem, whose vocabulary is used instead.
        has_inputs: whether samples have inputs, for ported problems that ask it.
        oov_token: with `VocabType.TOKEN`, the entry that replaces unknown words. If None, they raise an error.
        inputs_prefix, targets_prefix: strings that are prepended to each input text and each target text in records. As
            in tensor2tensor, decoding does not add them: the texts to decode must begin with the prefix as well.
    """

    text_features = ("inputs", "targets")
    vocab_type = VocabType.SUBWORD
    approx_vocab_size = 2**15
    approx_target_vocab_size = None
    additional_reserved_tokens = ()
    normalization = subwords.IDENTITY
    character_coverage = subwords.CHARACTER_COVERAGE
    split_digits = False
    existing_vocabularies = types.MappingProxyType({})
    vocab_size_is_approximate = True
    vocab_size_is_limit = False
    max_samples_for_vocab = 2_000_000
    use_vocab_from_other_problem = None
    oov_token = None
    inputs_prefix = ""
    targets_prefix = ""
    eval_decode_metric = "bleu"
    has_inputs = True
    _is_preparing = False  # whether `feature_encoders` learns missing vocabularies

    @property
    def is_generate_per_split(self):
        """Whether `generate_samples` is called for each split. If not, its samples are distributed over all shards."""
        raise NotWritten(f"{type(self).__name__}: set is_generate_per_split to True or False.")

    @property
    def dataset_splits(self):
        """The splits, each with its number of shards."""
        return [{"split": DatasetSplit.TRAIN, "shards": 100}, {"split": DatasetSplit.EVAL, "shards": 1}]

    def generate_samples(self, data_dir: str, tmp_dir: str, dataset_split: str) -> Iterable[dict[str, str]]:
        """Yields {"inputs": str, "targets": str}."""
        raise NotWritten(f"{type(self).__name__}: define generate_samples.")

    @property
    def vocab_filename(self):
        """File name of the shared vocabulary: `vocab.<problem>.<size>.model` or `vocab.<problem>.tokens`."""
        if self.use_vocab_from_other_problem:
            return self.use_vocab_from_other_problem.vocab_filename
        if self.vocab_type == VocabType.TOKEN:
            return f"vocab.{self.dataset_filename()}.tokens"
        return f"vocab.{self.dataset_filename()}.{self.approx_vocab_size}{self._ending(self.text_features[0])}"

    @property
    def vocab_filenames(self):
        """{feature: file name}: `vocab_filename` if it is shared, or else `vocab.<problem>.<feature>.<size>.model`."""
        if other := self.use_vocab_from_other_problem:
            names = other.vocab_filenames
            if len(set(names.values())) == 1:
                return dict.fromkeys(self.text_features, *set(names.values()))
            if missing := [feature for feature in self.text_features if feature not in names]:
                raise UserError(
                    f"{self.name}: {other.name} has vocabularies for {' and '.join(names)}, but not for {missing[0]}."
                )
            return {feature: names[feature] for feature in self.text_features}
        if not self._has_two_vocabularies:
            return dict.fromkeys(self.text_features, self.vocab_filename)
        return {
            name: f"vocab.{self.dataset_filename()}.{name}.{size}{self._ending(name)}"
            for name, size in self._vocab_sizes().items()
        }

    def _vocab_sizes(self):
        sizes = self.approx_vocab_size, self.approx_target_vocab_size or self.approx_vocab_size
        return dict(zip(self.text_features, sizes, strict=False))

    def _ending(self, feature):
        if self.existing_vocabularies:
            return vocabulary_files.ending_of(self.existing_vocabularies[feature])
        is_byte_level = self.vocab_type == VocabType.BYTE_LEVEL_BPE
        return vocabulary_files.BYTE_LEVEL_BPE if is_byte_level else vocabulary_files.SENTENCEPIECE

    @property
    def _has_two_vocabularies(self):
        if self.vocab_type in (VocabType.CHARACTER, VocabType.TOKEN):
            return False
        if self.existing_vocabularies:
            return len(set(self.existing_vocabularies.values())) > 1
        return self.approx_target_vocab_size is not None

    def prepare_generation(self, data_dir, tmp_dir):
        """Makes only the vocabularies that `feature_encoders` opens, because an override may read other files."""
        try:
            self._make_vocabularies(data_dir, tmp_dir)
        except (MissingFile, FileNotFoundError):
            if self.vocab_type != VocabType.TOKEN and not self.overrides("get_or_create_vocab", Text2TextProblem):
                raise
            # As in tensor2tensor, `generate_samples` may write the vocabulary before it returns an iterator.
            self.generate_samples(data_dir, tmp_dir, DatasetSplit.TRAIN)
            self._make_vocabularies(data_dir, tmp_dir)

    def _make_vocabularies(self, data_dir, tmp_dir):
        if self.overrides("get_or_create_vocab", Text2TextProblem):
            self.get_or_create_vocab(data_dir, tmp_dir)
        self._is_preparing, self._tmp_dir = True, tmp_dir
        try:
            self.open_encoders(data_dir)
        except (MissingFile, NotImplementedError):
            if self._encodes_text:
                raise
            # If there is such an override, `generate_encoded_samples` may write the missing files, as in tensor2tensor.
        finally:
            self._is_preparing = False

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        """Returns the encoder of the first text feature, usually the only encoder; creates missing vocabularies.

        Vocabularies are learned from the training samples or adopted from `existing_vocabularies`.

        Raises:
            UserError: the file does not exist and `force_get` is set, the text does not allow the vocabulary's size, or
                an existing file differs from the vocabulary to adopt.
        """
        if self.vocab_type == VocabType.CHARACTER:
            return vocabulary.ByteTextEncoder()
        if self.vocab_type == VocabType.TOKEN:
            return vocabulary.TokenTextEncoder(os.path.join(data_dir, self.vocab_filename), self.oov_token)
        return self._subword_encoders(data_dir, tmp_dir, force_get)[self.text_features[0]]

    def _subword_encoders(self, data_dir, tmp_dir, force_get):
        if self._is_preparing:
            tmp_dir, force_get = self._tmp_dir, False
        owner = self.use_vocab_from_other_problem or self
        paths = {feature: os.path.join(data_dir, name) for feature, name in self.vocab_filenames.items()}
        owner_paths = {feature: os.path.join(data_dir, name) for feature, name in owner.vocab_filenames.items()}
        owner_paths = {feature: path for feature, path in owner_paths.items() if path in paths.values()}
        missing = {feature: path for feature, path in owner_paths.items() if not files.exists(path)}
        if missing and force_get:
            raise MissingFile(
                f"{next(iter(missing.values()))}: no such vocabulary. Run: {datagen_command(self, data_dir)}"
            )
        if owner.existing_vocabularies and not force_get:
            owner._take_over_vocabularies(owner_paths)
        elif missing:
            owner._learn_vocabularies(missing, data_dir, tmp_dir)
        encoders = {path: vocabulary_files.open_encoder(path) for path in set(paths.values())}
        return {feature: encoders[path] for feature, path in paths.items()}

    def _take_over_vocabularies(self, paths):
        for path, source in {paths[name]: self.existing_vocabularies[name] for name in paths}.items():
            adopted = vocabulary_files.as_adopted(source, path)
            if not files.exists(path):
                vocabulary_files.adopt(source, path)
            elif any(files.read_bytes(file) != content for file, content in adopted.items()):
                raise UserError(
                    f"{path}: this vocabulary differs from {source}, which was requested. Delete it, or choose another "
                    "--data_dir."
                )

    def _learn_vocabularies(self, paths, data_dir, tmp_dir):
        """Learns the missing vocabularies; `paths` is {feature: path}."""
        if not self._has_two_vocabularies:
            path = paths[self.text_features[0]]
            self._learn(lambda: self.generate_text_for_vocab(data_dir, tmp_dir), path, self.text_features[0])
            return
        with self._sampled_texts(data_dir, tmp_dir) as sample:
            for name, path in paths.items():
                at = self.text_features.index(name)
                self._learn(lambda at=at: (texts[at] for texts in sample), path, name)

    def _learn(self, lines, path, feature):
        """Learns a feature's vocabulary from the lines that `lines()` returns; `lines` may be called twice."""
        if not path.endswith(ending := self._ending(feature)):
            raise UserError(
                f"{self.name}: vocab_filename is {os.path.basename(path)!r}, and {path} does not exist. To learn a "
                f"vocabulary, expected a name that ends in {ending}."
            )
        size = self._vocab_sizes()[feature]
        is_limit = self.vocab_size_is_limit and feature == self.text_features[0]
        LOGGER.info(f"learning a vocabulary of {'at most ' * is_limit}{size} pieces: {path}")
        learn = self._learner()
        try:
            learn(lines(), path.removesuffix(".model"), size, at_most=is_limit)
        except subwords.ImpossibleSize as error:
            if not (self.vocab_size_is_approximate or is_limit):
                flag = "--target_vocab_size" if ".targets." in os.path.basename(path) else "--vocab_size"
                setting = flag if "vocab_size" in getattr(self, "flags", ()) else "approx_vocab_size"
                raise error.naming(setting) from None
            LOGGER.warning(f"{self.name}: {error.reason} The vocabulary will have {error.possible} pieces.")
            learn(lines(), path.removesuffix(".model"), error.possible)

    def _learner(self):
        symbols = self.additional_reserved_tokens
        if self.vocab_type != VocabType.BYTE_LEVEL_BPE:
            options = {name: getattr(self, name) for name in SENTENCEPIECE}
            return functools.partial(subwords.train_sentencepiece, user_defined_symbols=symbols, **options)
        if symbols:
            raise UserError(
                f"{self.name}: additional_reserved_tokens ({', '.join(symbols)}) are not supported by byte-level BPE. "
                "Remove them, or choose another vocabulary type."
            )
        return byte_level_bpe.learn_byte_level_bpe

    def generate_text_for_vocab(self, data_dir, tmp_dir):
        """Yields the lines from which a shared vocabulary is learned: all texts of the selected samples."""
        with self._sampled_texts(data_dir, tmp_dir) as sample:
            for texts in sample:
                yield from texts

    def samples_for_vocab(self, data_dir, tmp_dir):
        """Returns samples, some of which are selected to learn a vocabulary; by default the training samples."""
        return self.generate_samples(data_dir, tmp_dir, DatasetSplit.TRAIN)

    @contextlib.contextmanager
    def _sampled_texts(self, data_dir, tmp_dir):
        with Reservoir(self.max_samples_for_vocab, self.random_seed) as reservoir:
            samples = self.checked_samples(self.samples_for_vocab(data_dir, tmp_dir))
            reservoir.fill(tuple(self.texts(sample)) for sample in samples)
            LOGGER.info(f"{self.name}: learning a vocabulary from {len(reservoir):,} of {reservoir.seen:,} samples")
            yield reservoir

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {feature: ids}, where texts end in 1; samples with an empty text are skipped and counted.

        Generation calls this method only if it is overridden; otherwise it encodes the samples in several processes.
        """
        encode = self.sample_encoder(data_dir)
        for sample in self.nonblank_samples(data_dir, tmp_dir, dataset_split):
            yield from encode([sample])

    def samples_to_encode(self, data_dir, tmp_dir, dataset_split):
        """Returns text samples and a function that encodes them, unless `generate_encoded_samples` is overridden."""
        if not self._encodes_text:
            return super().samples_to_encode(data_dir, tmp_dir, dataset_split)
        return self.nonblank_samples(data_dir, tmp_dir, dataset_split), self.sample_encoder(data_dir)

    @property
    def _encodes_text(self):
        return not self.overrides("generate_encoded_samples", Text2TextProblem)

    def nonblank_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields checked samples, except samples with a blank text (`subwords.is_blank`), which `removed` counts."""
        may_warn = "targets" in self.text_features  # in the inputs of classifiers, line ends do not matter
        for sample in self.checked_samples(self.generate_samples(data_dir, tmp_dir, dataset_split)):
            texts = self.texts(sample)
            if any(map(subwords.is_blank, texts)):
                self.removed["empty"] += 1
                continue
            if may_warn and (text := next((text for text in texts if "\n" in text.strip()), None)):
                may_warn = False
                self._warn_of_lost_line_ends(text, data_dir)
            yield sample

    def _warn_of_lost_line_ends(self, text, data_dir):
        encoder = self.feature_encoders(data_dir)[self.text_features[-1]]
        if "\n" not in encoder.decode(encoder.encode(text)):
            LOGGER.warning(
                f"{self.name}: the vocabulary turns line ends into spaces, as in {shown(text)}. With vocab_type = "
                "VocabType.BYTE_LEVEL_BPE, they are kept."
            )

    def texts(self, sample):
        """Returns the texts of a sample in the order of `text_features`, not yet checked; an entry may be None."""
        return [sample.get(name) for name in self.text_features]

    @property
    def expected_sample(self):
        """A description of the expected form of a sample, for messages."""
        return ", ".join(f'"{name}": str' for name in self.text_features)

    def checked_samples(self, samples):
        """Yields samples. Raises `UserError` if a sample lacks a text, or if `samples` is not iterable."""
        for sample in generated(samples, f"{self.name}: generate_samples", f"{{{self.expected_sample}}}"):
            if not (isinstance(sample, dict) and all(isinstance(text, str) for text in self.texts(sample))):
                raise UserError(
                    f"{self.name}: generate_samples gave {shown(sample)}. Expected {{{self.expected_sample}}}."
                )
            if any(map(SURROGATE.search, self.texts(sample))):
                raise UserError(
                    f"{self.name}: generate_samples gave {shown(sample)}: it contains an unpaired surrogate."
                )
            yield sample

    def sample_encoder(self, data_dir):
        """Returns a picklable function that encodes a list of samples as examples."""
        prefixes = {name: getattr(self, f"{name}_prefix") for name in self.text_features}
        return functools.partial(_encode, self.feature_encoders(data_dir), prefixes)

    def feature_encoders(self, data_dir):
        """Returns the vocabularies in `data_dir`; a shared vocabulary is returned for each feature.

        Raises:
            UserError: a vocabulary does not exist.
        """
        if len(set(self.vocab_filenames.values())) > 1:
            return self._subword_encoders(data_dir, None, force_get=True)
        return dict.fromkeys(self.text_features, self.get_or_create_vocab(data_dir, None, force_get=True))

    def learned_files(self, data_dir):
        """Returns the paths of the vocabularies that this problem learns, but not those of `existing_vocabularies`."""
        if self.vocab_type in (VocabType.CHARACTER, VocabType.TOKEN) or self.use_vocab_from_other_problem:
            return []
        paths = dict.fromkeys(os.path.join(data_dir, name) for name in self.vocab_filenames.values())
        return [file for path in paths for file in vocabulary_files.files_of(path)]

    def generation_settings(self):
        """Returns the vocabularies' names and sources; see `Problem.generation_settings`."""
        if self.vocab_type == VocabType.CHARACTER:
            return {"vocabulary": None}
        names = list(dict.fromkeys(self.vocab_filenames.values()))
        settings = {"vocabulary": names[0] if len(names) == 1 else names}
        if self.vocab_type == VocabType.TOKEN:
            return settings
        owner = self.use_vocab_from_other_problem or self
        sources = owner.existing_vocabularies
        settings |= {
            "max_samples_for_vocab": None if sources else owner.max_samples_for_vocab,
            "additional_reserved_tokens": list(owner.additional_reserved_tokens),
        }
        for name in SENTENCEPIECE:
            value = getattr(owner, name)
            settings[name] = None if sources or value == getattr(Text2TextProblem, name) else value
        if all(map(files.exists, sources.values())):  # the source may be deleted after it has been adopted
            settings["existing_vocabularies"] = {side: _sha256(path) for side, path in sources.items()}
        return settings


def _sha256(path):
    return hashlib.sha256(files.read_bytes(path)).hexdigest()


def _encode(encoders, prefixes, samples):
    return [
        {name: [*encoders[name].encode(prefix + sample[name]), vocabulary.EOS_ID] for name, prefix in prefixes.items()}
        for sample in samples
    ]
