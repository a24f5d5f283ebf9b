"""The vocabulary of a problem on the user's own files."""

import os

from t2t_lite import files
from t2t_lite.data import own_files
from t2t_lite.data.own_files import OwnFiles
from t2t_lite.data.problem import VocabType
from t2t_lite.errors import UserError
from t2t_lite.problems import own_flags
from t2t_lite.problems.vocabulary_sources import count_pieces

FLAGS = ("vocab_size", "vocab_type", "vocab_from", "max_samples_for_vocab")


def remembered(feature):
    """Returns the keys of the configuration, and how each value is checked; see `OwnFiles`."""
    return {
        **{name: OwnFiles._CONFIG[name] for name in ("vocab_size", "max_samples_for_vocab")},
        "vocab_from": lambda paths: not paths or own_files.are_paths_of(paths, feature),
        "vocab_type": own_flags.REMEMBERED["vocab_type"],
    }


class OwnVocabulary(OwnFiles):
    """Mixin, to be listed before the problem's base class: the vocabulary of `text_features`, of pieces.

    Attributes:
        default_vocab_type: VocabType, what is learned without `--vocab_type`.
    """

    default_vocab_type = VocabType.SUBWORD

    def vocabulary_config(self, vocab_size=None, vocab_type=None, vocab_from=(), max_samples_for_vocab=None):
        """Returns what `remember` needs of t2t-datagen's flags of these names. Raises `UserError`.

        Args:
            vocab_size: size of the vocabulary; None: 32000.
            vocab_type: what to learn: "byte_level_bpe", which keeps every character of the text, or "subwords"
                (SentencePiece), for which any white space is one space; None: `default_vocab_type`.
            vocab_from: an existing vocabulary: see `vocabulary_sources.find_vocabularies`.
            max_samples_for_vocab: int, samples that the vocabulary is learned from; None: as many as the problem says.
        """
        found = own_flags.check_vocabulary((), vocab_size, None, vocab_type, vocab_from, (), max_samples_for_vocab)
        if found["target_vocab_size"] is not None:
            raise UserError(f"--vocab_from={','.join(vocab_from)}: found two vocabularies. Expected one.")
        vocabulary = {name: found[name] for name in FLAGS}
        if vocab_from:
            feature = self.text_features[0]
            vocabulary["vocab_from"] = {feature: found["vocab_from"][feature]}
        else:
            vocabulary["vocab_type"] = vocab_type or self.default_vocab_type.value
        return vocabulary

    @property
    def vocab_type(self):
        """The kind of vocabulary that is learned."""
        return VocabType((self._config or {}).get("vocab_type") or VocabType.SUBWORD.value)

    @property
    def existing_vocabularies(self):
        """The vocabularies that are used, {feature: path}; {} to learn one."""
        return self.config.get("vocab_from") or {}

    @property
    def max_samples_for_vocab(self):
        """Number of samples that the vocabulary is learned from."""
        return self.config.get("max_samples_for_vocab") or super().max_samples_for_vocab

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        """See `Text2TextProblem.get_or_create_vocab`."""
        self.read_config(data_dir)
        return super().get_or_create_vocab(data_dir, tmp_dir, force_get)

    def hold_vocabulary(self, folder, path, **remembered):
        """Copies a vocabulary into a folder without text, for a model that was trained elsewhere.

        Args:
            folder: str, which exists.
            path: str, of the vocabulary, of any kind that `vocabulary_files` lists.
            **remembered: what else the configuration has, such as `class_labels`.

        Raises:
            UserError: not such a vocabulary.
        """
        feature = self.text_features[0]
        config = {
            "problem": self.name,
            "vocab_size": count_pieces(path),
            "vocab_type": None,
            "max_samples_for_vocab": None,
            "files": {},
            **remembered,
        }
        self.remember({**config, "vocab_from": {feature: path}})
        self.get_or_create_vocab(folder, None)
        self.remember({**config, "vocab_from": {feature: self.vocab_filename}})
        files.write_json(os.path.join(folder, self.config_filename), self.config)
