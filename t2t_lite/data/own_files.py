"""What the problems on the user's own files share: flags give the files, the data folder remembers them."""

import os
import types

from t2t_lite.data import files
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError, shown

FLAGS = {DatasetSplit.TRAIN: "train_files", DatasetSplit.EVAL: "dev_files", DatasetSplit.TEST: "test_files"}
_BYTES_A_SHARD = 2**24
_MOST_SHARDS = 100


class OwnFiles:
    """Mixin, before the problem's own base class. Subclasses write `configure`, which ends in `remember`.

    What is remembered is a dict of JSON values, written to `<data_dir>/<config_filename>` so that later commands need
    the folder alone. It has "problem" (name), "vocab_size" and "files": {split: [{"path", "bytes"}, …]}.

    Attributes:
        example_flags: what a user who has given nothing is shown.
    """

    example_flags = "--train_files=a.en,a.de --dev_files=b.en,b.de"

    _CONFIG = types.MappingProxyType(
        {
            "vocab_size": lambda size: _is_size(size),
            "target_vocab_size": lambda size: size is None or _is_size(size),
            "languages": lambda codes: codes is None or (_are_strings(codes) and len(codes) == 2),
            "user_defined_symbols": lambda symbols: symbols is None or _are_strings(symbols),
            "max_samples_for_vocab": lambda count: count is None or _is_size(count),
            "vocab_from": lambda paths: not paths or _is_pair(paths),
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

    def remember(self, config):
        """Keeps what `configure` was told."""
        self._config, self._config_from = config, None

    def read_config(self, data_dir):
        """Returns what `configure` said, else what the data folder says. Raises `UserError` where there is neither."""
        import tensorflow as tf

        if self._config is None or self._config_from not in (None, data_dir):
            path = os.path.join(data_dir, self.config_filename)
            if not tf.io.gfile.exists(path):
                raise UserError(
                    f"{path}: no such file. Expected a folder written by: t2t-datagen --problem={self.name} "
                    f"{self.example_flags} --data_dir={data_dir}"
                )
            config = files.read_json(path)
            for key, is_right in self._CONFIG.items():
                if not is_right(config.get(key)):
                    raise UserError(
                        f"{path}: {key!r} is missing or not of the right type: {shown(config.get(key))}. Copy the "
                        "file again, or run t2t-datagen."
                    )
            self._config, self._config_from = config, data_dir
        return self._config

    @property
    def config(self):
        """What is remembered. Raises `UserError` before anything is known."""
        if self._config is None:
            raise UserError(f"{self.name}: no corpus yet. Call configure(), or a method that takes the data folder.")
        return self._config

    def files_of(self, split):
        """Returns the [{"path", "bytes"}, …] of a split; [] where it has none."""
        found = self.config["files"].get(split, [])
        return [found] if isinstance(found, dict) else found  # as format 1 of parsing_english_own.json has it

    @property
    def approx_vocab_size(self):
        """The vocabulary's size that was asked for."""
        return self.config["vocab_size"]

    @property
    def dataset_splits(self):
        """The splits that have files; one shard for every 16 MiB of them, 100 at most."""
        return [
            {"split": split, "shards": min(_MOST_SHARDS, 1 + int(self.bytes_of(split)) // _BYTES_A_SHARD)}
            for split in self.config["files"]
        ]

    def bytes_of(self, split):
        """Returns the size of what is read for a split."""
        return sum(facts["bytes"] for facts in self.files_of(split))

    def generation_settings(self):
        """Returns what the files depend on, whose change is refused over finished data."""
        return {
            **super().generation_settings(),
            **{FLAGS[split]: self.files_of(split) for split in self.config["files"]},
        }

    def source_files(self):
        """See `Problem.source_files`."""
        return {
            f"--{FLAGS[split]}": [facts["path"] for facts in self.files_of(split)] for split in self.config["files"]
        }

    def generate_data(self, data_dir, tmp_dir, task_id=-1):
        """See `Problem.generate_data`; without `configure`, generates again what the data folder says."""
        self.read_config(data_dir)
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
        return [os.path.join(data_dir, self.config_filename), *super().vocabulary_files(data_dir)]

    def learned_files(self, data_dir):
        """Returns the paths of the vocabulary's files."""
        self.read_config(data_dir)
        config = os.path.join(data_dir, self.config_filename)
        return [path for path in super().learned_files(data_dir) if path != config]


def _is_size(value):
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63


def _is_dict(value):
    return isinstance(value, dict)


def _is_pair(paths):
    return _is_dict(paths) and {*paths} == {"inputs", "targets"} and _are_strings(list(paths.values()))


def _are_strings(values):
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _are_files(found):
    found = [found] if _is_dict(found) else found  # as format 1 of parsing_english_own.json has it
    return isinstance(found, list) and all(
        _is_dict(facts) and isinstance(facts.get("path"), str) and isinstance(facts.get("bytes"), int)
        for facts in found
    )


def describe_files(split, paths):
    """Returns [{"path", "bytes"}, …] of what a flag names. Raises `UserError` unless each is a file."""
    import tensorflow as tf

    flag = f"--{FLAGS[split]}={','.join(paths)}"
    for path in paths:
        if not tf.io.gfile.exists(path):
            raise UserError(f"{flag}: no such file: {path}. Check the path.")
        if tf.io.gfile.isdir(path):
            raise UserError(f"{flag}: {path} is a folder. Expected a file.")
    full = [path if "://" in path else os.path.abspath(path) for path in paths]
    return [{"path": path, "bytes": tf.io.gfile.stat(path).length} for path in full]


def check_vocab_size(given, default, expected, flag="vocab_size"):
    """Returns the size, `default` for None. Raises `UserError` for one that the bytes alone fill."""
    size = default if given is None else given
    if size < 300:
        raise UserError(f"--{flag}={size}: too small; bytes alone take 256. Expected {expected}.")
    return size
