"""`translate_own`: any corpus of the user's, in one command and without writing Python.

    t2t-datagen --problem=translate_own --train_files=a.en,a.de --dev_files=b.en,b.de --vocab_size=8000 --data_dir=D

`D/problem.json` keeps languages, vocabulary and files, so that later commands need `--data_dir=D` alone.
"""

import os
import re

from t2t_lite import registry
from t2t_lite.data import own_files
from t2t_lite.data.own_files import OwnFiles
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit, TranslateProblem
from t2t_lite.data.progress import Progress
from t2t_lite.errors import UserError

_DEFAULT_VOCAB_SIZE = 32000


@registry.register_problem
class TranslateOwn(OwnFiles, TranslateProblem):
    """A parallel corpus given by its files: see `configure`. Once generated, all is read from the data folder."""

    config_filename = "problem.json"

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
                raise UserError(f"translate_own: missing --{own_files.FLAGS[split]}. {why}.")
        described = {split: _described(split, paths) for split, paths in given.items() if paths}
        self.remember(
            {
                "format": 1,
                "problem": self.name,
                "languages": _checked_languages(languages, train_files),
                "vocab_size": own_files.check_vocab_size(vocab_size, _DEFAULT_VOCAB_SIZE, "1000 to 50000"),
                "files": described,
            }
        )

    @property
    def language_pair(self):
        """The languages, once the data folder has been read; None before."""
        return tuple(self._config["languages"]) if self._config else None

    def generation_settings(self):
        """Returns languages, vocabulary and files, whose change is refused over finished data."""
        config = self.config
        mine = {"languages": config["languages"], "vocab_size": config["vocab_size"]}
        return {**mine, **super().generation_settings()}

    def prepare_generation(self, data_dir, tmp_dir):
        """Reads all files once, so that a bad line is found before any work; then makes the vocabulary."""
        for split in self.config["files"]:
            progress = Progress(f"{self.name}: reading {FILE_TAGS[split]}", "pairs")
            for _ in progress.watch(self.generate_samples(data_dir, tmp_dir, split)):
                pass
            progress.done()
        super().prepare_generation(data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields the pairs of a split's files."""
        from t2t_lite.data import corpora

        self.read_config(data_dir)
        return corpora.read_corpus([facts["path"] for facts in self.files_of(dataset_split)])

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        """See `Text2TextProblem.get_or_create_vocab`."""
        self.read_config(data_dir)
        return super().get_or_create_vocab(data_dir, tmp_dir, force_get)


def _described(split, paths):
    """Returns [{"path", "bytes"}, …]; checks number and existence."""
    from t2t_lite.data import corpora

    flag = f"--{own_files.FLAGS[split]}={','.join(paths)}"
    is_tsv = len(paths) == 1 and corpora.without_packing(paths[0]).endswith(".tsv")
    if len(paths) != 2 and not is_tsv:
        raise UserError(
            f"{flag}: found {len(paths)}. Expected two files that go together (a.en,a.de), or one .tsv file."
        )
    return own_files.describe_files(split, paths)


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
