"""The base class for problems on the user's own files, with `configure`, the stored configuration and the splits.

The configuration is a dict of JSON values with the keys of `settings`. Generation writes it to a JSON file in the data
folder, so that later commands need only this folder.
"""

import dataclasses
import os
import types

from t2t_lite import files
from t2t_lite.cli.console import Progress
from t2t_lite.corpora.plain_text import FewWarnings
from t2t_lite.data.named_problems import datagen_command
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit, Problem
from t2t_lite.data.splits import FLAGS, describe_files, with_content
from t2t_lite.errors import LOGGER, UserError, counted, shown
from t2t_lite.problems.own_settings import SETTINGS, TABLES

_BYTES_A_SHARD = 2**24
_MOST_SHARDS = 100


def kept(key, meaning, default=None):
    """Returns a property that reads a key of the configuration, or gives `default` if the value is None or missing.

    Args:
        key: str, the key of the configuration.
        meaning: str, the property's docstring.
        default: the property's default, an immutable value.
    """
    return property(lambda problem: default if (value := problem.config.get(key)) is None else value, doc=meaning)


class OwnProblem(Problem):
    """A mixin for the user's own files; list it before a problem's other base class. Subclasses define `settings`.

    Attributes:
        settings: {key: OwnSetting}, the settings that the configuration stores, in this order; see `own_settings`.
        config_filename: file name of the configuration in the data folder; by default `<problem>.json`.
        columns: names of a table's columns, or of the parts of another kind of file, which messages show.
        file_endings: extensions of the files to use if the user gives a folder, such as (".png",); if (), a folder
            raises an error.
        example_flags: str, an example of the required flags, which an error message shows if flags are missing.
        expected_lines: str, a description of what a file must contain, for messages.
        required_splits: the splits that must have files.
        sample_unit: str, the plural name of the samples in a file, for messages.
    """

    is_generate_per_split = True
    settings = types.MappingProxyType({})
    columns = ()
    file_endings = ()
    example_flags = "--train_files=train.tsv --dev_files=dev.tsv"
    expected_lines = "files"
    required_splits = (DatasetSplit.TRAIN, DatasetSplit.EVAL)
    sample_unit = "lines"

    def __init__(self, was_reversed=False, was_copy=False):
        super().__init__(was_reversed, was_copy)
        self._config = None
        # the data folder from which the configuration was read; None if `configure` has set the configuration
        self._config_from = None

    @property
    def config_filename(self):
        """The name of the file in the data folder that stores the configuration."""
        return f"{self.name}.json"

    # Methods that read and check the user's request.

    @property
    def flags(self):
        """The names of the settings that `configure` accepts, which are also flags of t2t-datagen."""
        return [
            name
            for name, setting in SETTINGS.items()
            if setting.meaning and (setting.key or name) in self.settings and (self.columns or name not in TABLES)
        ]

    def configure(self, train_files=(), dev_files=(), test_files=(), **given):
        """Sets the user's files and the settings for generation.

        Args:
            train_files, dev_files, test_files: lists of paths, like t2t-datagen's flags with these names.
            **given: other settings in `flags`, which `t2t-datagen --help` explains. Any iterable can be given for a
                list, and None means the default.

        Raises:
            UserError: a setting is missing, is malformed or contradicts another setting, or a file does not exist.
            TypeError: an argument is not a setting of this problem.
        """
        if wrong := given.keys() - set(self.flags):
            raise TypeError(
                f"{self.name}: configure has no argument {', '.join(sorted(wrong))}. Expected {', '.join(self.flags)}."
            )
        files_by_split = zip(FLAGS.items(), (train_files, dev_files, test_files), strict=True)
        paths = {split: SETTINGS[flag].typed(split_files) or [] for (split, flag), split_files in files_by_split}
        self.check_files(paths)
        values = {name: SETTINGS[name].typed(given.get(name)) for name in self.flags}
        named = {split: self._files(split, paths[split]) for split in paths if paths[split]}
        described = {split: describe_files(split, split_files) for split, split_files in named.items()}
        values |= {"problem": self.name, "files": described}
        self.check_settings(values, paths)
        defaults = {key: setting.default for key, setting in self.settings.items()}
        self.remember(
            {key: values.get(key, default) for key, default in defaults.items() if default is not dataclasses.MISSING}
        )

    def _files(self, split, paths):
        """Returns the given paths, with each folder replaced by the files in it."""
        files_of_paths = []
        for path in paths:
            if not (self.file_endings and files.is_folder(path)):
                files_of_paths.append(path)
                continue
            every, endings = files.find_files(path, ("",)), " or ".join(self.file_endings)
            inside = [name for name in every if name.lower().endswith(self.file_endings)]
            if not inside:
                raise UserError(
                    f"--{FLAGS[split]}: {path}: this folder has no {endings} file. Expected {self.expected_lines}."
                )
            if others := sorted({*every} - {*inside}):
                LOGGER.warning(
                    f"--{FLAGS[split]}: {path}: skipped {counted(len(others), 'file')} without the ending {endings}, "
                    f"such as {others[0]}."
                )
            files_of_paths += inside
        return files_of_paths

    def check_files(self, paths):
        """Raises `UserError` unless files are given for all `required_splits`; `paths` is {split: list of paths}."""
        for split in self.required_splits:
            if not paths[split]:
                raise UserError(
                    f"{self.name}: missing --{FLAGS[split]}. Expected {self.expected_lines}: {self.example_flags}."
                )

    def check_settings(self, values, paths):
        """Checks all settings and converts them, in place, to the values of the configuration.

        Args:
            values: {name of a setting: value, or None if it is missing}; missing values are replaced by defaults.
            paths: {split: list of paths}.

        Raises:
            UserError: a setting is malformed or contradicts another setting.
        """
        keys = [key for key in self.with_defaults(values) if values.get(key, 0) is None]
        values |= {key: self.settings[key].default for key in keys}

    def with_defaults(self, values):
        """Returns the keys of the settings whose missing values are replaced by defaults."""
        return self.settings.keys()

    # Methods for the values stored in the data folder.

    def remember(self, config):
        """Sets the configuration of this problem."""
        self._config, self._config_from = config, None

    def read_config(self, data_dir):
        """Returns the configuration from `configure` or from the data folder.

        Raises `UserError` if both are missing.
        """
        if self._config is None or self._config_from not in (None, data_dir):
            path = os.path.join(data_dir, self.config_filename)
            if not files.exists(path):
                raise UserError(
                    f"{path}: no such file. Expected a folder written by: {datagen_command(self, data_dir)}"
                )
            self._config, self._config_from = self._read_file(path), data_dir
        return self._config

    def _read_file(self, path):
        config = files.read_json(path)
        if isinstance(splits := config.get("files"), dict):  # for parsing_english_own, 0.1.0 wrote one file, not a list
            config["files"] = {split: [one] if isinstance(one, dict) else one for split, one in splits.items()}
        for key, setting in self.settings.items():
            value = config.get(key)
            if not (setting.is_kept(value) and self.fits(key, value)):
                raise UserError(
                    f"{path}: {key!r} is missing or has the wrong type: {shown(value)}. Copy the file again, or "
                    "delete it and run t2t-datagen with all its flags."
                )
        return config

    def fits(self, key, value):
        """Returns whether this problem accepts a setting's value that passes the setting's own check."""
        return True

    @property
    def config(self):
        """The configuration. Raises `UserError` if neither `configure` nor a data folder has set it yet."""
        if self._config is None:
            raise UserError(
                f"{self.name}: has no corpus yet. Call configure(), or a method that takes the data folder."
            )
        return self._config

    def determined(self, key, data_dir=None):
        """Returns the value of a configuration key that generation determines.

        Args:
            key: str, such as "class_labels".
            data_dir: str; None if the configuration is already known.

        Raises:
            UserError: generation has not determined the value yet.
        """
        config = self.config if data_dir is None else self.read_config(data_dir)
        if config.get(key) is None:
            where = self._config_from and os.path.join(self._config_from, self.config_filename)
            raise UserError(
                f"{where or self.name}: no {key} yet; t2t-datagen determines it from the training files. Generate the "
                "data first."
            )
        return config[key]

    def files_of(self, split):
        """Returns the files [{"path", "bytes"}, …] of a split; [] if the split has no files."""
        return self.config["files"].get(split, [])

    def paths_of(self, split):
        """Returns the paths of a split's files, joined to one string for messages."""
        return ",".join(facts["path"] for facts in self.files_of(split))

    def bytes_of(self, split):
        """Returns the total size of a split's files in bytes."""
        return sum(facts["bytes"] for facts in self.files_of(split))

    @property
    def dataset_splits(self):
        """The splits with files; each has one shard per 16 MiB of text (at most 100), or one shard if it is ordered."""
        largest = {split: 1 if split in self.ordered_splits else _MOST_SHARDS for split in self.config["files"]}
        return [
            {"split": split, "shards": min(most, 1 + int(self.bytes_of(split)) // _BYTES_A_SHARD)}
            for split, most in largest.items()
        ]

    # Generation.

    def generation_settings(self):
        """Returns the settings that determine the generated files, first those that are flags, which messages name."""
        described = {flag: list(map(_content, self.files_of(split))) or None for split, flag in FLAGS.items()}
        fixed = {key: self.config.get(key) for key, setting in self.settings.items() if setting.fixed}
        return {**described, **fixed, **super().generation_settings()}

    def source_files(self):
        """See `Problem.source_files`."""
        return {
            f"--{FLAGS[split]}": [facts["path"] for facts in self.files_of(split)] for split in self.config["files"]
        }

    def generate_data(self, data_dir, tmp_dir, task_id=-1):
        """See `Problem.generate_data`; if `configure` was not called, the configuration in the data folder is used."""
        config = self.read_config(data_dir)
        if not config["files"]:  # the folder of an imported model, which has a vocabulary but no corpus
            self.check_files(dict.fromkeys(FLAGS, ()))
        if self.skip_bad_lines:
            config["skip_bad_lines"] = True
        self.skip_bad_lines = config.get("skip_bad_lines") is True
        path = os.path.join(data_dir, self.config_filename)
        before = self._read_file(path)["files"] if files.exists(path) else {}
        known = {facts["path"]: facts for described in before.values() for facts in described}
        for split, described in config["files"].items():
            config["files"][split] = [with_content(facts, known.get(facts["path"], {})) for facts in described]
        self._warn_of_files_that_are_trained_on()
        super().generate_data(data_dir, tmp_dir, task_id)
        config |= self._read_file(path)  # with what an earlier process determined, such as the labels of finished data

    def _warn_of_files_that_are_trained_on(self):
        trained_on = {facts.get("sha256", facts["path"]): facts["path"] for facts in self.files_of(DatasetSplit.TRAIN)}
        warn = FewWarnings("further files that are also training corpora are not listed")
        for split in self.config["files"].keys() - {DatasetSplit.TRAIN}:
            for facts in self.files_of(split):
                if same := trained_on.get(facts.get("sha256", facts["path"])):
                    what = "is" if same == facts["path"] else f"has the same content as {same},"
                    warn(
                        f"--{FLAGS[split]}: {facts['path']} {what} a training corpus, so scores will reflect memorized "
                        "samples. Expected files that are not in --train_files."
                    )

    def prepare_generation(self, data_dir, tmp_dir):
        """Reads all files, prepares the vocabulary and other files, then writes the configuration."""
        self.check_corpus(data_dir, tmp_dir)
        super().prepare_generation(data_dir, tmp_dir)
        files.write_json(os.path.join(data_dir, self.config_filename), self.config)

    def check_corpus(self, data_dir, tmp_dir):
        """Reads all files once, so that faults in the user's files are found before generation begins."""
        for split in self.config["files"]:
            progress = Progress(f"{self.name}: reading {FILE_TAGS[split]}", self.sample_unit)
            self.check_split(split, progress.watch, data_dir, tmp_dir)
            progress.done()

    def check_split(self, split, watch, data_dir, tmp_dir):
        """Reads a split's files once; `watch` wraps the iterable of samples and counts them."""
        for _ in watch(self.generate_samples(data_dir, tmp_dir, split)):
            pass

    # Methods for the files in the data folder.

    def feature_encoders(self, data_dir):
        """See `Problem.feature_encoders`."""
        self.read_config(data_dir)
        return super().feature_encoders(data_dir)

    def vocabulary_files(self, data_dir):
        """Returns the paths of the vocabulary's files and of the configuration."""
        self.read_config(data_dir)
        return [*self.configuration_files(data_dir), *super().vocabulary_files(data_dir)]

    def configuration_files(self, data_dir):
        """Returns the path of the file that stores the configuration."""
        return [os.path.join(data_dir, self.config_filename)]


def _content(facts):
    """Returns the facts about a file that depend only on its contents."""
    return {name: value for name, value in facts.items() if name != "changed"}
