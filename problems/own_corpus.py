"""The base class for problems on the user's own texts: it adds vocabularies and tables of text to `own_problem`.

`--vocab_from` may name vocabulary files of any type listed in `vocabulary_files`, or a folder.
"""

import itertools

from t2t_lite import files, registry
from t2t_lite.corpora.cells import JSON_LINES
from t2t_lite.corpora.plain_text import kind
from t2t_lite.corpora.tables import Layout, is_number, read_table
from t2t_lite.data.problem import DatasetSplit, Text2TextProblem, VocabType
from t2t_lite.data.splits import full_path
from t2t_lite.errors import UserError, counted, flag_list, located, shown
from t2t_lite.problems.own_problem import OwnProblem, kept
from t2t_lite.problems.own_settings import SENTENCEPIECE, TABLES, VOCABULARY
from t2t_lite.text import vocabulary_files
from t2t_lite.text.encoder_parts import open_sentencepiece
from t2t_lite.text.subwords import LONGEST_SYMBOL, RESERVED, is_symbol

_MOST_LABELS = 10_000  # maximum number of labels; a file with more labels probably has texts in the label column


class OwnCorpus(OwnProblem, Text2TextProblem):
    """A mixin for the user's own texts; list it before a problem's other base class. Subclasses define `settings`.

    Attributes:
        usual_vocab_sizes: str, the vocabulary sizes that an error message recommends.
    """

    usual_vocab_sizes = "1000 to 50000"
    vocab_size_is_approximate = False
    vocab_size_is_limit = False  # the vocabulary has the requested size, which the data folder stores

    @property
    def expected_lines(self):
        """A description of what a file must contain, for messages."""
        return f"lines of {'<TAB>'.join(self.columns)}"

    # Checks of the settings that the user requests.

    def check_settings(self, values, paths):
        """See `OwnProblem.check_settings`; also finds or checks the settings of the vocabulary."""
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
        """Raises `UserError` if a setting for tables applies to none of the files `paths`."""
        is_json = [kind(path) in JSON_LINES for path in paths]
        if values["fields"] and not any(is_json):
            raise UserError("--fields: only for .jsonl files, but none are given. Remove the flag.")
        for name in ("header", "separator"):
            if values[name] is not None and all(is_json):
                raise UserError(f"--{name}: lines of JSON contain the names of their fields. Remove the flag.")
        columns = values["columns"] or ()
        if all(is_json) and any(map(is_number, columns)):
            raise UserError(
                f"--columns={flag_list(columns)}: lines of JSON have no numbered columns. Expected only the names of "
                f"the fields for {' and '.join(self.columns)}, such as --fields={','.join(self.columns)}."
            )

    def with_defaults(self, values):
        """Returns the keys that have defaults; keys for learning a vocabulary have none if a vocabulary is given."""
        return self.settings.keys() - ({*VOCABULARY} if values.get("vocab_from") else {})

    def fits(self, key, value):
        """Returns whether a value fits this problem; an existing vocabulary must fit the problem's text features."""
        return key != "vocab_from" or not value or {*value} == {*self.text_features}

    def _find_vocabulary(self, values):
        """Replaces `vocab_from` with the paths of its vocabularies, and sets their sizes."""
        sources = values["vocab_from"]
        if both := [name for name in VOCABULARY if values.get(name) is not None]:
            raise UserError(
                f"--{both[0]} together with --vocab_from={','.join(sources)}: an existing vocabulary is used unchanged."
                " Remove one of the two flags."
            )
        paths = find_vocabularies(sources, values.get("languages") or ())
        pieces = {side: len(read_pieces(path)) for side, path in paths.items()}
        is_shared = paths["inputs"] == paths["targets"]
        if not is_shared and len(self.text_features) == 1:
            raise UserError(f"--vocab_from={','.join(sources)}: found two vocabularies. Expected one.")
        values["vocab_size"] = pieces["inputs"]
        values["target_vocab_size"] = None if is_shared else pieces["targets"]
        values["vocab_from"] = {feature: paths[feature] for feature in self.text_features}

    def _check_vocabulary(self, values):
        """Checks the settings for learning a vocabulary."""
        for name in ("vocab_size", "target_vocab_size"):
            if values.get(name) is not None and values[name] < 259:
                raise UserError(
                    f"--{name}={values[name]}: too small, since bytes and special pieces take 259. Expected more; "
                    f"{self.usual_vocab_sizes} is usual."
                )
        vocab_type = values.get("vocab_type") or self.settings["vocab_type"].default if "vocab_type" in values else None
        for name in SENTENCEPIECE:
            if values.get(name) == getattr(Text2TextProblem, name):
                values[name] = None  # if the value is the default, None is stored, as in data from earlier versions
        for name in (*SENTENCEPIECE, "user_defined_symbols"):
            if values.get(name) is not None and vocab_type == VocabType.BYTE_LEVEL_BPE.value:
                raise UserError(
                    f"--{name} together with --vocab_type={vocab_type}: only {VocabType.SUBWORD.value} support it. "
                    f"Remove --{name}, or use --vocab_type={VocabType.SUBWORD.value}."
                )
        flag, symbols = "--user_defined_symbols", values.get("user_defined_symbols") or ()
        for symbol in symbols:
            if not is_symbol(symbol):
                raise UserError(
                    f"{flag}: {shown(symbol)}: expected symbols without spaces, such as <2de>, of at most "
                    f"{LONGEST_SYMBOL} characters."
                )
            if RESERVED.fullmatch(symbol) or symbols.count(symbol) > 1:
                raise UserError(f"{flag}: {symbol} is already in the vocabulary. Choose another symbol, or remove it.")

    # Properties that read values stored in the data folder.

    approx_vocab_size = kept(
        "vocab_size", "The requested size of the vocabulary; None if an existing vocabulary is used."
    )

    @property
    def vocab_type(self):
        """The type of vocabulary to learn."""
        return VocabType((self._config or {}).get("vocab_type") or VocabType.SUBWORD.value)

    normalization = kept(
        "normalization",
        "The SentencePiece normalization rule with which the vocabulary is learned.",
        Text2TextProblem.normalization,
    )
    character_coverage = kept(
        "character_coverage",
        "The fraction of the text's characters that become single pieces.",
        Text2TextProblem.character_coverage,
    )
    split_digits = kept("split_digits", "Whether no piece has more than one digit.", Text2TextProblem.split_digits)

    existing_vocabularies = kept(
        "vocab_from", "The existing vocabularies to use, {feature: path}; {} to learn a vocabulary.", {}
    )

    @property
    def max_samples_for_vocab(self):
        """Number of samples from which the vocabulary is learned."""
        return self.config.get("max_samples_for_vocab") or super().max_samples_for_vocab

    @property
    def layout(self):
        """The `Layout` that determines the columns of the user's tables."""
        return self._layout_of(self.config)._replace(languages=self.language_pair or ())

    def _layout_of(self, settings):
        values = {name: settings.get(name) for name in TABLES}
        return Layout(self.columns, **values | {name: tuple(values[name] or ()) for name in ("columns", "fields")})

    def rows(self, split):
        """Yields (list of cells, "<path>, line <number>") for every row of a split's tables; see `read_table`."""
        for facts in self.files_of(split):
            yield from read_table(facts["path"], self.layout, self.on_bad_line)

    def enough_labels(self, labels, kind):
        """Returns the labels, sorted. Raises `UserError` unless the training files have 2 to 10,000 labels."""
        distinct = sorted(set(labels))
        if not 2 <= len(distinct) <= _MOST_LABELS:
            raise UserError(
                f"{self.paths_of(DatasetSplit.TRAIN)}: {counted(len(distinct), kind)}. Expected 2 to {_MOST_LABELS:,}."
            )
        return distinct

    # Methods for the files in the data folder.

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        """See `Text2TextProblem.get_or_create_vocab`."""
        self.read_config(data_dir)
        return super().get_or_create_vocab(data_dir, tmp_dir, force_get)

    def learned_files(self, data_dir):
        """Returns the paths of the vocabulary's files."""
        self.read_config(data_dir)
        return super().learned_files(data_dir)

    def hold_vocabulary(self, folder, path, **remembered):
        """Copies a vocabulary into a folder, for a model that was trained elsewhere; no text is needed.

        Args:
            folder: str, an existing folder.
            path: str, path of a vocabulary of any kind in `vocabulary_files`, or {feature: path}.
            **remembered: further values to store in the configuration, such as `class_labels`.

        Raises:
            UserError: a file is not a vocabulary of one of these kinds.
        """
        paths = path if isinstance(path, dict) else {self.text_features[0]: path}
        size = len(read_pieces(paths[self.text_features[0]]))
        config = {**dict.fromkeys(self.settings), "problem": self.name, "vocab_size": size, "files": {}, **remembered}
        self.remember({**config, "vocab_from": paths})
        self.get_or_create_vocab(folder, None)
        self.remember({**config, "vocab_from": self.vocab_filenames})
        files.write_json(self.configuration_files(folder)[0], self.config)


def find_vocabularies(paths, languages):
    """Returns {"inputs": path, "targets": path} of vocabulary files; the paths are equal if both sides share one.

    Args:
        paths: [model], [model of the inputs, model of the targets], [data_dir] or [output_dir].
        languages: the codes of the languages of (inputs, targets). If a folder's problem has the opposite direction,
            its vocabularies are swapped.

    Raises:
        UserError: no vocabulary is found, several are found, or the vocabulary is of an unsupported kind.
    """
    flag = f"--vocab_from={','.join(paths)}"
    for path in paths:
        if not files.exists(path):
            raise UserError(f"{flag}: no such file or folder: {path}. Check the path.")
    has_folder = any(map(files.is_folder, paths))
    if len(paths) > (1 if has_folder else 2):
        raise UserError(f"{flag}: expected one .model file, two .model files (inputs,targets), or one folder alone.")
    vocabularies = _in_folder(flag, paths[0], languages) if has_folder else {"inputs": paths[0], "targets": paths[-1]}
    return {side: full_path(path) for side, path in vocabularies.items()}


def read_pieces(path):
    """Returns the pieces in a vocabulary file, a list of str, whatever the ids of its special pieces are.

    Raises `UserError` if the file is not a vocabulary.
    """
    if vocabulary_files.ending_of(path) != vocabulary_files.SENTENCEPIECE:
        encoder = vocabulary_files.open_encoder(path)
        return encoder.pieces(range(encoder.vocab_size))
    with located("--vocab_from"):
        processor = open_sentencepiece(files.read_bytes(path), path)
    return processor.id_to_piece([*range(processor.vocab_size())])


def _in_folder(flag, folder, languages):
    problem = registry.problem(_problem_name(flag, folder))
    encoders = problem.get_feature_encoders(folder)
    texts = [name for name in ("inputs", "targets") if name in getattr(problem, "text_features", encoders)]
    # if the problem has only one text feature, both paths are the same
    encoders = {"inputs": encoders[texts[0]], "targets": encoders[texts[-1]]}
    for encoder in encoders.values():
        if not vocabulary_files.has_pieces(encoder):
            raise UserError(
                f"{flag}: the vocabulary of {problem.full_name} has no pieces. Expected a vocabulary with pieces."
            )
    sides = ["inputs", "targets"]
    if problem.languages and tuple(languages) == tuple(reversed(problem.languages)):
        sides.reverse()
    return {"inputs": encoders[sides[0]].path, "targets": encoders[sides[1]].path}


def _problem_name(flag, folder):
    """Returns the name of the problem to which a data_dir or an output_dir belongs."""
    from t2t_lite.runs.run_config import read_run_config

    if run := read_run_config(folder):
        return run["problem"]
    manifests = files.list_files(folder, r".*-manifest\.json")
    requests = (files.read_json(path, {"request": {"problem?": str}})["request"] for path in manifests)
    names = sorted({request.get("problem", "") for request in requests} - {""})
    if len(names) == 1:
        return names[0]
    if names:
        raise UserError(f"{flag}: this folder has data of {', '.join(names)}. Expected a .model file in the folder.")
    raise UserError(
        f"{flag}: this folder has neither data of t2t-datagen nor a run of t2t-trainer. Expected one of these, or "
        "a .model file."
    )
