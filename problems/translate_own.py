"""`translate_own`: any corpus of the user's, in one command and without writing Python.

    t2t-datagen --problem=translate_own --train_files=a.en,a.de --dev_files=b.en,b.de --vocab_size=8000 --data_dir=D

`D/problem.json` keeps languages, vocabulary and files, so that later commands need `--data_dir=D` alone.
"""

import os
import re

from t2t_lite import registry
from t2t_lite.data import files
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit, TranslateProblem
from t2t_lite.data.progress import Progress
from t2t_lite.errors import UserError

_FLAGS = {DatasetSplit.TRAIN: "train_files", DatasetSplit.EVAL: "dev_files", DatasetSplit.TEST: "test_files"}
_DEFAULT_VOCAB_SIZE = 32000
_BYTES_A_SHARD = 2**24
_MOST_SHARDS = 100


@registry.register_problem
class TranslateOwn(TranslateProblem):
    """A parallel corpus given by its files: see `configure`. Once generated, all is read from the data folder."""

    def __init__(self, was_reversed=False, was_copy=False):
        super().__init__(was_reversed, was_copy)
        self._config = None
        self._config_from = None  # the data folder it was read from; None: given by `configure`

    def configure(self, train_files=(), dev_files=(), test_files=(), vocab_size=None, languages=()):
        """Says what to generate from; the arguments are t2t-datagen's flags of these names.

        Args:
            train_files: paths of the training corpus: inputs and targets in two files of lines that go together, or one
                `.tsv` file of two columns. Each may be packed (`.gz`, `.bz2`, `.xz`).
            dev_files: likewise; evaluated while training.
            test_files: likewise; may be left out.
            vocab_size: pieces of the vocabulary, which both languages share; None: 32000.
            languages: of inputs and targets, such as ("en", "de"); left out: the endings of the training files.

        Raises:
            UserError: a flag is missing or of another form, or a file does not exist.
        """
        given = {DatasetSplit.TRAIN: train_files, DatasetSplit.EVAL: dev_files, DatasetSplit.TEST: test_files}
        for split, why in (
            (DatasetSplit.TRAIN, "Expected the corpus to learn from: --train_files=a.en,a.de or --train_files=a.tsv"),
            (DatasetSplit.EVAL, "Expected some 1,000 pairs to evaluate on, which are not trained on"),
        ):
            if not given[split]:
                raise UserError(f"translate_own: missing --{_FLAGS[split]}. {why}.")
        vocab_size = _DEFAULT_VOCAB_SIZE if vocab_size is None else vocab_size
        if vocab_size < 300:
            raise UserError(f"--vocab_size={vocab_size}: too small; bytes alone take 256. Expected 1000 to 50000.")
        described = {split: _described(split, paths) for split, paths in given.items() if paths}
        self._config_from = None
        self._config = {
            "format": 1,
            "problem": self.name,
            "languages": _checked_languages(languages, train_files),
            "vocab_size": vocab_size,
            "files": described,
        }

    def _read_config(self, data_dir):
        """Returns what `configure` said, else what `problem.json` says. Raises `UserError` where there is neither."""
        import tensorflow as tf

        if self._config is None or self._config_from not in (None, data_dir):
            path = os.path.join(data_dir, "problem.json")
            if not tf.io.gfile.exists(path):
                raise UserError(
                    f"{path}: no such file. Expected a folder written by: t2t-datagen --problem=translate_own "
                    f"--train_files=a.en,a.de --dev_files=b.en,b.de --data_dir={data_dir}"
                )
            self._config, self._config_from = files.read_json(path), data_dir
        return self._config

    @property
    def _known_config(self):
        if self._config is None:
            raise UserError("translate_own: no corpus yet. Call configure(), or a method that takes the data folder.")
        return self._config

    @property
    def language_pair(self):
        """The languages, once the data folder has been read; None before."""
        return tuple(self._config["languages"]) if self._config else None

    @property
    def approx_vocab_size(self):
        """The vocabulary's size that was asked for."""
        return self._known_config["vocab_size"]

    @property
    def dataset_splits(self):
        """The splits that have files; one shard for every 16 MiB of them, 100 at most."""
        return [
            {
                "split": split,
                "shards": min(_MOST_SHARDS, 1 + sum(facts["bytes"] for facts in described) // _BYTES_A_SHARD),
            }
            for split, described in self._known_config["files"].items()
        ]

    def generation_settings(self):
        """Returns languages, vocabulary and files, whose change is refused over finished data."""
        config = self._known_config
        named = {_FLAGS[split]: described for split, described in config["files"].items()}
        return {"languages": config["languages"], "vocab_size": config["vocab_size"], **named}

    def generate_data(self, data_dir, tmp_dir, task_id=-1):
        """See `Problem.generate_data`; without `configure`, generates again what `problem.json` says."""
        self._read_config(data_dir)
        super().generate_data(data_dir, tmp_dir, task_id)

    def prepare_generation(self, data_dir, tmp_dir):
        """Reads all files once, so that a bad line is found before any work; then makes the vocabulary."""
        for split in self._known_config["files"]:
            progress = Progress(f"{self.name}: reading {FILE_TAGS[split]}", "pairs")
            for _ in progress.watch(self.generate_samples(data_dir, tmp_dir, split)):
                pass
            progress.done()
        super().prepare_generation(data_dir, tmp_dir)
        files.write_json(os.path.join(data_dir, "problem.json"), self._known_config)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields the pairs of a split's files."""
        from t2t_lite.data import corpora

        described = self._read_config(data_dir)["files"][dataset_split]
        return corpora.read_corpus([facts["path"] for facts in described])

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        """See `Text2TextProblem.get_or_create_vocab`."""
        self._read_config(data_dir)
        return super().get_or_create_vocab(data_dir, tmp_dir, force_get)

    def vocabulary_files(self, data_dir):
        """Returns the paths of the vocabulary's files and of `problem.json`."""
        self._read_config(data_dir)
        return [os.path.join(data_dir, "problem.json"), *super().vocabulary_files(data_dir)]


def _described(split, paths):
    """Returns [{"path", "bytes"}, …]; checks number and existence."""
    import tensorflow as tf

    from t2t_lite.data import corpora

    flag = f"--{_FLAGS[split]}={','.join(paths)}"
    is_tsv = len(paths) == 1 and corpora.without_packing(paths[0]).endswith(".tsv")
    if len(paths) != 2 and not is_tsv:
        raise UserError(
            f"{flag}: found {len(paths)}. Expected two files that go together (a.en,a.de), or one .tsv file."
        )
    for path in paths:
        if not tf.io.gfile.exists(path):
            raise UserError(f"{flag}: no such file: {path}. Check the path.")
        if tf.io.gfile.isdir(path):
            raise UserError(f"{flag}: {path} is a folder. Expected a file.")
    full = [path if "://" in path else os.path.abspath(path) for path in paths]
    return [{"path": path, "bytes": tf.io.gfile.stat(path).length} for path in full]


def _checked_languages(given, train_files):
    """Returns [language of inputs, language of targets], from the files' endings where not given."""
    from t2t_lite.data import corpora

    found = list(given) or [os.path.splitext(corpora.without_packing(path))[1][1:] for path in train_files]
    if len(found) == 2 and all(re.fullmatch(r"[a-z]{2,3}([-_]\w+)?", code) for code in found) and found[0] != found[1]:
        return found
    if given:
        raise UserError(f"--languages={','.join(given)}: expected two different codes, inputs first, such as en,de.")
    raise UserError(
        f"--train_files={','.join(train_files)}: the endings do not name two languages. Add --languages=en,de (inputs "
        "first)."
    )
