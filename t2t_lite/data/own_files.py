"""Shared parts of the problems on the user's own files: flags name the files, and the data folder remembers them."""

import logging
import os
import types

from t2t_lite import files
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import UserError, shown
from t2t_lite.files.hashes import file_sha256

FLAGS = {DatasetSplit.TRAIN: "train_files", DatasetSplit.EVAL: "dev_files", DatasetSplit.TEST: "test_files"}
_LOGGER = logging.getLogger("t2t_lite")
_BYTES_A_SHARD = 2**24
_MOST_SHARDS = 100


def are_strings_or_none(values):
    """Returns whether a JSON value is a list of str, or None: not known yet, or not asked for."""
    return values is None or _are_strings(values)


# The keys of a configuration that say how the columns of tables are found, and how each value is checked.
TABLES = types.MappingProxyType({"columns": are_strings_or_none, "header": lambda value: value in (None, True, False)})


class OwnFiles:
    """Mixin, to be listed before the problem's base class. Subclasses define `configure`, which calls `remember` last.

    The configuration is a dict of JSON values, written to `<data_dir>/<config_filename>`, so that later commands need
    only the folder. It has "problem" (name), "vocab_size" and "files": {split: [{"path", "bytes"}, …]}.

    Attributes:
        example_flags: flags shown in the error for a user who has given none.
        expected_lines: what a file holds, for messages.
    """

    example_flags = "--train_files=a.en,a.de --dev_files=b.en,b.de"
    expected_lines = "text files"
    vocab_size_is_approximate = False  # it was typed

    _CONFIG = types.MappingProxyType(
        {
            "vocab_size": lambda size: _is_size(size),
            "target_vocab_size": lambda size: size is None or _is_size(size),
            "languages": lambda codes: codes is None or (_are_strings(codes) and len(codes) == 2),
            "user_defined_symbols": are_strings_or_none,
            "max_samples_for_vocab": lambda count: count is None or _is_size(count),
            "vocab_from": lambda paths: not paths or are_paths_of(paths, "inputs", "targets"),
            "files": lambda splits: _is_dict(splits) and all(map(_are_files, splits.values())),
        }
    )

    def __init__(self, was_reversed=False, was_copy=False):
        super().__init__(was_reversed, was_copy)
        self._config = None
        self._config_from = None  # the data folder it was read from; None: given by `configure`

    @property
    def config_filename(self):
        """Name of the file in the data folder."""
        return f"{self.name}.json"

    def described_files(self, train_files, dev_files, test_files):
        """Returns {split: [{"path", "bytes"}, …]}, the "files" of `remember`; `test_files` may be empty.

        Raises:
            UserError: there are none to train on or none to evaluate on, or a path is not that of a file.
        """
        given = {DatasetSplit.TRAIN: train_files, DatasetSplit.EVAL: dev_files, DatasetSplit.TEST: test_files}
        for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL):
            if not given[split]:
                raise UserError(
                    f"{self.name}: missing --{FLAGS[split]}. Expected {self.expected_lines}: {self.example_flags}."
                )
        return {split: describe_files(split, paths) for split, paths in given.items() if paths}

    def remember(self, config):
        """Stores the arguments of `configure`."""
        self._config, self._config_from = config, None

    def read_config(self, data_dir):
        """Returns the configuration of `configure` or of the data folder. Raises `UserError` if there is neither."""
        if self._config is None or self._config_from not in (None, data_dir):
            path = os.path.join(data_dir, self.config_filename)
            if not files.exists(path):
                raise UserError(
                    f"{path}: no such file. Expected a folder written by: t2t-datagen --problem={self.name} "
                    f"{self.example_flags} --data_dir={data_dir}"
                )
            self._config, self._config_from = self._read_file(path), data_dir
        return self._config

    def _read_file(self, path):
        config = files.read_json(path)
        for key, is_right in self._CONFIG.items():
            if not is_right(config.get(key)):
                raise UserError(
                    f"{path}: {key!r} is missing or not of the right type: {shown(config.get(key))}. Copy the file "
                    "again, or run t2t-datagen."
                )
        return config

    @property
    def config(self):
        """The configuration. Raises `UserError` if there is none yet."""
        if self._config is None:
            raise UserError(f"{self.name}: no corpus yet. Call configure(), or a method that takes the data folder.")
        return self._config

    def files_of(self, split):
        """Returns the files [{"path", "bytes"}, …] of a split, which may be []."""
        return _listed(self.config["files"].get(split, []))

    @property
    def approx_vocab_size(self):
        """The requested size of the vocabulary; None: it has none of its own."""
        return self.config.get("vocab_size")

    @property
    def dataset_splits(self):
        """The splits that have files; one shard for every 16 MiB of them, 100 at most."""
        return [
            {"split": split, "shards": min(_MOST_SHARDS, 1 + int(self.bytes_of(split)) // _BYTES_A_SHARD)}
            for split in self.config["files"]
        ]

    def bytes_of(self, split):
        """Returns the total size of a split's files."""
        return sum(facts["bytes"] for facts in self.files_of(split))

    def generation_settings(self):
        """Returns the settings that the files depend on; finished data refuse a change of these."""
        return {
            **super().generation_settings(),
            **{
                FLAGS[split]: [
                    {name: value for name, value in facts.items() if name != "changed"}
                    for facts in self.files_of(split)
                ]
                for split in self.config["files"]
            },
        }

    def _warn_of_files_that_are_trained_on(self):
        trained_on = {facts.get("sha256", facts["path"]): facts["path"] for facts in self.files_of(DatasetSplit.TRAIN)}
        for split in self.config["files"].keys() - {DatasetSplit.TRAIN}:
            for facts in self.files_of(split):
                if same := trained_on.get(facts.get("sha256", facts["path"])):
                    what = "is" if same == facts["path"] else f"has the same text as {same},"
                    _LOGGER.warning(
                        f"--{FLAGS[split]}: {facts['path']} {what} a training corpus: evaluations will measure what "
                        "was learned by heart. Expected sentences that are not in --train_files."
                    )

    def source_files(self):
        """See `Problem.source_files`."""
        return {
            f"--{FLAGS[split]}": [facts["path"] for facts in self.files_of(split)] for split in self.config["files"]
        }

    def generate_data(self, data_dir, tmp_dir, task_id=-1):
        """See `Problem.generate_data`; without `configure`, uses the configuration in the data folder."""
        config = self.read_config(data_dir)
        if self.skip_bad_lines:
            config["skip_bad_lines"] = True
        self.skip_bad_lines = config.get("skip_bad_lines") is True
        path = os.path.join(data_dir, self.config_filename)
        before = self._read_file(path) if files.exists(path) else {"files": {}}
        known = {facts["path"]: facts for found in before["files"].values() for facts in _listed(found)}
        for split, found in config["files"].items():
            told = [_with_content(facts, known.get(facts["path"], {})) for facts in _listed(found)]
            config["files"][split] = told[0] if _is_dict(found) else told
        self._warn_of_files_that_are_trained_on()
        super().generate_data(data_dir, tmp_dir, task_id)

    def prepare_generation(self, data_dir, tmp_dir):
        """See `Problem.prepare_generation`; then writes the configuration."""
        super().prepare_generation(data_dir, tmp_dir)
        files.write_json(os.path.join(data_dir, self.config_filename), self.config)

    def feature_encoders(self, data_dir):
        """See `Problem.feature_encoders`."""
        self.read_config(data_dir)
        return super().feature_encoders(data_dir)

    def vocabulary_files(self, data_dir):
        """Returns the paths of the vocabulary's files and of the configuration."""
        self.read_config(data_dir)
        return [*self.configuration_files(data_dir), *super().vocabulary_files(data_dir)]

    def learned_files(self, data_dir):
        """Returns the paths of the vocabulary's files."""
        self.read_config(data_dir)
        return super().learned_files(data_dir)

    def configuration_files(self, data_dir):
        """Returns the path of the configuration."""
        return [os.path.join(data_dir, self.config_filename)]


def _is_size(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63


def _is_dict(value):
    return isinstance(value, dict)


def are_paths_of(paths, *features):
    """Returns whether a JSON value is {feature: path} of these features."""
    return _is_dict(paths) and {*paths} == {*features} and _are_strings(list(paths.values()))


def _are_strings(values):
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _are_files(found):
    found = _listed(found)
    return isinstance(found, list) and all(
        _is_dict(facts)
        and isinstance(facts.get("path"), str)
        and isinstance(facts.get("bytes"), int)
        and isinstance(facts.get("sha256", ""), str)
        for facts in found
    )


def _listed(found):
    return [found] if _is_dict(found) else found  # a dict is what format 1 of parsing_english_own.json has


def _with_content(facts, before):
    """Returns {"path", "bytes", "sha256", "changed"} of a corpus as it is now.

    The file is read only if its size or times differ from those in `before`, so an edit that changes neither is not
    detected. Data of earlier versions have no SHA-256; for these only the size is compared.
    """
    path = facts["path"]
    if not files.exists(path):  # finished data are of use without it
        return facts
    if files.is_remote(path):
        import tensorflow as tf

        size, changed = files.size(path), [tf.io.gfile.stat(path).mtime_nsec]
    else:
        stat = os.stat(path)
        size, changed = stat.st_size, [stat.st_mtime_ns, stat.st_ctime_ns]
    if before.get("bytes") == size and before.get("changed", changed) == changed:
        return before
    return {"path": path, "bytes": size, "sha256": file_sha256(path, size, *changed), "changed": changed}


def describe_files(split, paths):
    """Returns [{"path", "bytes"}, …] for the files that a flag names. Raises `UserError` unless each is a file."""
    import tensorflow as tf

    flag = f"--{FLAGS[split]}={','.join(paths)}"
    for path in paths:
        if not tf.io.gfile.exists(path):
            raise UserError(f"{flag}: no such file: {path}. Check the path.")
        if tf.io.gfile.isdir(path):
            raise UserError(f"{flag}: {path} is a folder. Expected a file.")
    full = [path if "://" in path else os.path.abspath(path) for path in paths]
    return [{"path": path, "bytes": tf.io.gfile.stat(path).length} for path in full]


def check_vocab_size(given, default, usual, flag="vocab_size"):
    """Returns the size, or `default` for None. Raises `UserError` if the byte pieces alone need more."""
    size = default if given is None else given
    if size < 300:
        raise UserError(f"--{flag}={size}: too small; bytes alone take 256. Expected 300 or more; usual are {usual}.")
    return size
