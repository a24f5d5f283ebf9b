"""Problems of text: samples are strings, a vocabulary makes ids of them (tensor2tensor's text_problems.py)."""

import functools
import logging
import os
import random

from t2t_lite.data import subwords, vocabulary
from t2t_lite.data.problem import DatasetSplit, Problem, VocabType
from t2t_lite.errors import UserError

_LOGGER = logging.getLogger("t2t_lite")


class Text2TextProblem(Problem):
    """Text in, text out. Subclasses write `generate_samples` and `is_generate_per_split`."""

    vocab_type = VocabType.SUBWORD
    approx_vocab_size = 2**15
    additional_reserved_tokens = ()
    max_samples_for_vocab = None
    use_vocab_from_other_problem = None
    oov_token = None
    inputs_prefix = ""
    targets_prefix = ""
    eval_decode_metric = "bleu"

    @property
    def is_generate_per_split(self):
        """True: `generate_samples` is called for every split. False: once, and the stream is dealt over all shards."""
        raise NotImplementedError(f"{type(self).__name__}: set is_generate_per_split to True or False.")

    @property
    def dataset_splits(self):
        """The splits and their numbers of shards."""
        return [{"split": DatasetSplit.TRAIN, "shards": 100}, {"split": DatasetSplit.EVAL, "shards": 1}]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": str, "targets": str}."""
        raise NotImplementedError(f"{type(self).__name__}: write generate_samples.")

    @property
    def vocab_filename(self):
        """Name of the vocabulary file: `vocab.<problem>.<size>.model` or `vocab.<problem>.tokens`."""
        if self.use_vocab_from_other_problem:
            return self.use_vocab_from_other_problem.vocab_filename
        if self.vocab_type == VocabType.TOKEN:
            return f"vocab.{self.dataset_filename()}.tokens"
        return f"vocab.{self.dataset_filename()}.{self.approx_vocab_size}.model"

    def prepare_generation(self, data_dir, tmp_dir):
        """Makes the vocabulary."""
        self.get_or_create_vocab(data_dir, tmp_dir)

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        """Returns the encoder of `vocab_filename`, learned from the training samples where there is no such file.

        Raises:
            UserError: no such file and `force_get` is set, or a size that the text cannot give.
        """
        import tensorflow as tf

        if self.vocab_type == VocabType.CHARACTER:
            return vocabulary.ByteTextEncoder()
        path = os.path.join(data_dir, self.vocab_filename)
        if self.vocab_type == VocabType.TOKEN:
            return vocabulary.TokenTextEncoder(path, replace_oov=self.oov_token)
        if not tf.io.gfile.exists(path):
            if force_get:
                raise UserError(
                    f"{path}: no such vocabulary. Run: t2t-datagen --problem={self.name} --data_dir={data_dir}"
                )
            owner = self.use_vocab_from_other_problem or self
            _LOGGER.info(f"learning a vocabulary of {self.approx_vocab_size} pieces: {path}")
            subwords.train_sentencepiece(
                owner.generate_text_for_vocab(data_dir, tmp_dir),
                path.removesuffix(".model"),
                owner.approx_vocab_size,
                user_defined_symbols=owner.additional_reserved_tokens,
            )
        return vocabulary.SentencePieceEncoder(path)

    def generate_text_for_vocab(self, data_dir, tmp_dir):
        """Yields the lines that the vocabulary is learned from: both sides of the training samples.

        `max_samples_for_vocab` limits them to that many samples, drawn evenly from all.
        """
        samples = self.generate_samples(data_dir, tmp_dir, DatasetSplit.TRAIN)
        if self.max_samples_for_vocab:
            samples = draw(samples, self.max_samples_for_vocab, self.random_seed)
        for sample in samples:
            yield from (sample[feature] for feature in ("inputs", "targets") if feature in sample)

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": ids, "targets": ids} ending in 1; pairs with a blank side are left out and counted.

        Where it is not overridden, generation encodes the samples itself, in several processes.
        """
        encode = self._sample_encoder(data_dir)
        for sample in self._nonblank_samples(data_dir, tmp_dir, dataset_split):
            yield from encode([sample])

    def samples_to_encode(self, data_dir, tmp_dir, dataset_split):
        """See `Problem.samples_to_encode`: text, unless `generate_encoded_samples` is overridden."""
        if type(self).generate_encoded_samples is not Text2TextProblem.generate_encoded_samples:
            return super().samples_to_encode(data_dir, tmp_dir, dataset_split)
        return self._nonblank_samples(data_dir, tmp_dir, dataset_split), self._sample_encoder(data_dir)

    def _nonblank_samples(self, data_dir, tmp_dir, dataset_split):
        for sample in self.generate_samples(data_dir, tmp_dir, dataset_split):
            if sample["inputs"].strip() and sample["targets"].strip():
                yield sample
            else:
                self.removed["empty"] += 1

    def _sample_encoder(self, data_dir):
        prefixes = {"inputs": self.inputs_prefix, "targets": self.targets_prefix}
        return functools.partial(_encode, self.feature_encoders(data_dir), prefixes)

    def feature_encoders(self, data_dir):
        """Returns the vocabulary in `data_dir` for both sides. Raises `UserError` when it is not there."""
        encoder = self.get_or_create_vocab(data_dir, None, force_get=True)
        return {"inputs": encoder, "targets": encoder}

    def vocabulary_files(self, data_dir):
        """Returns the paths of the vocabulary's files in `data_dir`."""
        if self.vocab_type == VocabType.CHARACTER:
            return []
        path = os.path.join(data_dir, self.vocab_filename)
        return [path] if self.vocab_type == VocabType.TOKEN else [path, path.removesuffix(".model") + ".vocab"]

    def learned_files(self, data_dir):
        """Returns the vocabulary's files, unless they are the user's or another problem's."""
        is_own = self.vocab_type == VocabType.SUBWORD and not self.use_vocab_from_other_problem
        return self.vocabulary_files(data_dir) if is_own else []

    def generation_settings(self):
        """Returns the vocabulary's name; see `Problem.generation_settings`."""
        return {"vocabulary": None if self.vocab_type == VocabType.CHARACTER else self.vocab_filename}


def _encode(encoders, prefixes, samples):
    return [
        {side: [*encoders[side].encode(prefix + sample[side]), vocabulary.EOS_ID] for side, prefix in prefixes.items()}
        for sample in samples
    ]


def draw(samples, count, seed):
    """Returns `count` samples drawn evenly from an iterable, in its order (algorithm R); all for no count."""
    if not count:
        return list(samples)
    generator, kept = random.Random(seed), []
    for index, sample in enumerate(samples):
        if index < count:
            kept.append((index, sample))
        elif (place := generator.randrange(index + 1)) < count:
            kept[place] = (index, sample)
    return [sample for _, sample in sorted(kept, key=lambda pair: pair[0])]
