"""The base class of problems on the user's own texts: it adds a vocabulary and tables to `own_problem`.

`--vocab_from` may name vocabulary files of one of the kinds in `vocabulary_files`, or a folder.
"""

import itertools
import os

from t2t_lite import files, registry
from t2t_lite.corpora.cells import JSON_LINES
from t2t_lite.corpora.plain_text import kind
from t2t_lite.corpora.tables import Layout, read_table
from t2t_lite.data.problem import DatasetSplit, Text2TextProblem, VocabType
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.problems.own_problem import OwnProblem, kept
from t2t_lite.problems.own_settings import SENTENCEPIECE, TABLES, VOCABULARY
from t2t_lite.text import vocabulary_files
from t2t_lite.text.subwords import LONGEST_SYMBOL, RESERVED, is_symbol

_MOST_LABELS = 10_000  # more labels are texts from the wrong column


def _learned_with(name, meaning):
    """Returns a property: a setting of the vocabulary's learner, with the default of `Text2TextProblem`."""

    def value(problem):
        configured = (problem._config or {}).get(name)
        return getattr(Text2TextProblem, name) if configured is None else configured

    return property(value, doc=meaning)


class OwnCorpus(OwnProblem, Text2TextProblem):
    """A problem on the user's own texts, to be listed before the class of its kind. Subclasses write `settings`.

    Attributes:
        usual_vocab_sizes: what an error about the vocabulary's size recommends.
    """

    usual_vocab_sizes = "1000 to 50000"
    vocab_size_is_approximate = False
    vocab_size_is_limit = False  # a data folder keeps the requested size

    @property
    def expected_lines(self):
        """A description of a file's content, for messages."""
        return f"lines of {'<TAB>'.join(self.columns)}"

    # The request.

    def check_settings(self, values, paths):
        """See `OwnProblem.check_settings`; also finds or checks the vocabulary."""
        if "columns" in values:
            self._layout_of(values).check()
            self._check_tables(values, [*itertools.chain(*paths.values())])
        if values.get("vocab_from"):
            self._find_vocabulary(values)
        elif "vocab_size" in values:
            self._check_vocabulary(values)
            self.vocab_size_is_limit = values["vocab_size"] is None
        super().check_settings(values, paths)

    def _check_tables(self, values, paths):
        """Raises `UserError` for settings of tables that apply to no file; `paths` need not be tables."""
        is_json = [kind(path) in JSON_LINES for path in paths]
        if values["fields"] and not any(is_json):
            raise UserError("--fields: only for .jsonl files, and no file is one. Remove the flag.")
        for name in ("header", "separator"):
            if values[name] is not None and all(is_json):
                raise UserError(f"--{name}: lines of JSON contain the names of their fields. Remove the flag.")

    def with_defaults(self, values):
        """Returns all keys, except those of a learned vocabulary if an existing one is used."""
        return self.settings.keys() - ({*VOCABULARY} if values.get("vocab_from") else {})

    def fits(self, key, value):
        """Returns whether an existing vocabulary is for the features of this problem."""
        return key != "vocab_from" or not value or {*value} == {*self.text_features}

    def _find_vocabulary(self, values):
        """Describes the vocabulary that `vocab_from` names."""
        sources = values["vocab_from"]
        if both := [name for name in VOCABULARY if values.get(name) is not None]:
            raise UserError(
                f"--{both[0]} together with --vocab_from={','.join(sources)}: an existing vocabulary is used unchanged."
                " Remove one of the two flags."
            )
        paths = find_vocabularies(sources, values.get("languages") or ())
        pieces = {side: count_pieces(path) for side, path in paths.items()}
        is_shared = paths["inputs"] == paths["targets"]
        if not is_shared and len(self.text_features) == 1:
            raise UserError(f"--vocab_from={','.join(sources)}: found two vocabularies. Expected one.")
        values["vocab_size"] = pieces["inputs"]
        values["target_vocab_size"] = None if is_shared else pieces["targets"]
        values["vocab_from"] = {feature: paths[feature] for feature in self.text_features}

    def _check_vocabulary(self, values):
        """Checks the settings of a vocabulary that is learned."""
        for name in ("vocab_size", "target_vocab_size"):
            if values.get(name) is not None and values[name] < 300:
                raise UserError(
                    f"--{name}={values[name]}: too small, since bytes alone take 256 pieces. Expected 300 or more; "
                    f"{self.usual_vocab_sizes} is usual."
                )
        vocab_type = values.get("vocab_type") or self.settings["vocab_type"].default if "vocab_type" in values else None
        for name in SENTENCEPIECE:
            if values.get(name) == getattr(Text2TextProblem, name):
                values[name] = None  # the default, which data of earlier versions do not mention
            if values.get(name) is not None and vocab_type == VocabType.BYTE_LEVEL_BPE.value:
                raise UserError(
                    f"--{name} together with --vocab_type={vocab_type}, which keeps texts unchanged. Remove --{name}, "
                    f"or use --vocab_type={VocabType.SUBWORD.value}."
                )
        flag, symbols = "--user_defined_symbols", values.get("user_defined_symbols") or ()
        if symbols and values["vocab_type"] == VocabType.BYTE_LEVEL_BPE.value:
            raise UserError(
                f"{flag} is not supported with --vocab_type={values['vocab_type']}. Remove one of the two flags."
            )
        for symbol in symbols:
            if not is_symbol(symbol):
                raise UserError(
                    f"{flag}: {shown(symbol)}: expected symbols without blanks, such as <2de>, of at most "
                    f"{LONGEST_SYMBOL} characters."
                )
            if RESERVED.fullmatch(symbol) or symbols.count(symbol) > 1:
                raise UserError(f"{flag}: {symbol} is already in the vocabulary. Choose another symbol, or remove it.")

    # The values in the data folder.

    approx_vocab_size = kept("vocab_size", "The requested size of the vocabulary; None: an existing one is used.")

    @property
    def vocab_type(self):
        """The kind of vocabulary that is learned."""
        return VocabType((self._config or {}).get("vocab_type") or VocabType.SUBWORD.value)

    normalization = _learned_with("normalization", "SentencePiece's rule that the vocabulary is learned with.")
    character_coverage = _learned_with(
        "character_coverage", "The share of the text's characters that become single pieces."
    )
    split_digits = _learned_with("split_digits", "Whether no piece has more than one digit.")

    existing_vocabularies = kept("vocab_from", "The vocabularies that are used, {feature: path}; {} to learn one.", {})

    @property
    def max_samples_for_vocab(self):
        """Number of samples that the vocabulary is learned from."""
        return self.config.get("max_samples_for_vocab") or super().max_samples_for_vocab

    @property
    def layout(self):
        """The `Layout` that finds the columns of tables."""
        return self._layout_of(self.config)._replace(languages=self.language_pair or ())

    def _layout_of(self, settings):
        values = {name: settings.get(name) for name in TABLES}
        return Layout(self.columns, **values | {name: tuple(values[name] or ()) for name in ("columns", "fields")})

    def rows(self, split):
        """Yields (list of str, place for messages) of every line of a split's tables; see `read_table`."""
        for facts in self.files_of(split):
            yield from read_table(facts["path"], self.layout, self.on_bad_line)

    def enough_labels(self, labels, what):
        """Returns the labels, sorted. Raises `UserError` unless there are 2 to 10,000 in the training files."""
        found = sorted(set(labels))
        if not 2 <= len(found) <= _MOST_LABELS:
            raise UserError(
                f"{self.paths_of(DatasetSplit.TRAIN)}: {counted(len(found), what)}. Expected 2 to {_MOST_LABELS:,}."
            )
        return found

    # The files in the data folder.

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        """See `Text2TextProblem.get_or_create_vocab`."""
        self.read_config(data_dir)
        return super().get_or_create_vocab(data_dir, tmp_dir, force_get)

    def learned_files(self, data_dir):
        """Returns the paths of the vocabulary's files."""
        self.read_config(data_dir)
        return super().learned_files(data_dir)

    def hold_vocabulary(self, folder, path, **remembered):
        """Copies a vocabulary into a folder without text, for a model that was trained elsewhere.

        Args:
            folder: str, which exists.
            path: str, of the vocabulary, of any kind that `vocabulary_files` lists; or {feature: path}.
            **remembered: further values of the configuration, such as `class_labels`.

        Raises:
            UserError: the file is not such a vocabulary.
        """
        paths = path if isinstance(path, dict) else {self.text_features[0]: path}
        config = {
            "problem": self.name,
            "vocab_size": count_pieces(paths[self.text_features[0]]),
            "vocab_type": None,
            "max_samples_for_vocab": None,
            "files": {},
            **remembered,
        }
        self.remember({**config, "vocab_from": paths})
        self.get_or_create_vocab(folder, None)
        self.remember({**config, "vocab_from": self.vocab_filenames})
        files.write_json(self.configuration_files(folder)[0], self.config)


def find_vocabularies(paths, languages):
    """Returns {"inputs": path, "targets": path} of vocabulary files; equal if both sides share one.

    Args:
        paths: [model], [model of the inputs, model of the targets], [data_dir] or [output_dir].
        languages: (of inputs, of targets). If a folder's problem is in the other direction, its vocabularies are
            swapped.

    Raises:
        UserError: no vocabulary is found, or several, or one of another kind.
    """
    flag = f"--vocab_from={','.join(paths)}"
    if len(paths) > 2:
        raise UserError(f"{flag}: found {len(paths)}. Expected one .model file, two (inputs,targets), or one folder.")
    for path in paths:
        if not files.exists(path):
            raise UserError(f"{flag}: no such file or folder: {path}. Check the path.")
    folders = [path for path in paths if files.is_folder(path)]
    if folders and len(paths) > 1:
        raise UserError(f"{flag}: {folders[0]} is a folder. Expected two .model files, or one folder alone.")
    vocabularies = _in_folder(flag, folders[0], languages) if folders else {"inputs": paths[0], "targets": paths[-1]}
    return {side: path if "://" in path else os.path.abspath(path) for side, path in vocabularies.items()}


def count_pieces(path):
    """Returns the number of pieces of a vocabulary file. Raises `UserError` for another file."""
    import sentencepiece

    if vocabulary_files.ending_of(path) != vocabulary_files.SENTENCEPIECE:
        return vocabulary_files.open_encoder(path).vocab_size
    model = files.read_bytes(path)
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()
    except (RuntimeError, ValueError):
        raise UserError(
            f"--vocab_from: {path}: not a SentencePiece model ({len(model):,} bytes). Expected the .model file that "
            "t2t-datagen or spm_train wrote, or a file named .subwords, vocab.json, encoder.json or vocab.txt."
        ) from None


def _in_folder(flag, folder, languages):
    problem = registry.problem(_problem_name(flag, folder))
    encoders = problem.get_feature_encoders(folder)
    texts = [name for name in ("inputs", "targets") if name in getattr(problem, "text_features", encoders)]
    encoders = {"inputs": encoders[texts[0]], "targets": encoders[texts[-1]]}  # the same if there is only one text
    for encoder in encoders.values():
        if not vocabulary_files.has_pieces(encoder):
            raise UserError(f"{flag}: the vocabulary of {problem.full_name} has no pieces. Expected one with pieces.")
    sides = ["inputs", "targets"]
    if problem.languages and tuple(languages) == tuple(reversed(problem.languages)):
        sides.reverse()
    return {"inputs": encoders[sides[0]].path, "targets": encoders[sides[1]].path}


def _problem_name(flag, folder):
    """Returns the name of the problem of a data_dir or an output_dir."""
    from t2t_lite.runs.run_config import read_run_config

    if run := read_run_config(folder):
        return run["problem"]
    manifests = files.list_files(folder, r".*-manifest\.json")
    requests = (files.read_json(path, {"request": {"problem?": str}})["request"] for path in manifests)
    names = sorted({request.get("problem", "") for request in requests} - {""})
    if len(names) == 1:
        return names[0]
    if names:
        raise UserError(f"{flag}: contains the data of {', '.join(names)}. Expected a .model file in the folder.")
    raise UserError(
        f"{flag}: neither data of t2t-datagen nor a run of t2t-trainer. Expected such a folder, or a .model file."
    )
