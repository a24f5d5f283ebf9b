"""Tracks the state of a problem's data in a folder: has generation begun or finished, and with which settings?

Also finds all files that a problem's encoders read, so that they can be copied into a run or an export.
"""

import copy
import functools
import hashlib
import inspect
import itertools
import json
import os
import re
import tempfile

from t2t_lite import files
from t2t_lite.data import manifests, sharding
from t2t_lite.data.manifests import find_manifest, manifest_path, read_begun
from t2t_lite.data.records import Records
from t2t_lite.data.splits import FILE_TAGS, full_path, named_split
from t2t_lite.errors import LOGGER, UserError, first_line
from t2t_lite.files.folders import held_lock
from t2t_lite.files.request import Request

_FORMAT = 2  # version of generation; increase it when the same request gives different files


class DataFolder:
    """The files that t2t-datagen writes for a problem into a folder.

    A manifest that contains only the request is written first, under a name that ends in `.begun`. The full manifest is
    written last, so its existence means that the data are finished. After an interruption, the same request resumes
    with the existing vocabulary and chunks. A different request starts over.

    Args:
        problem: Problem.
        path: path of the data folder, which need not exist; "" is the working directory.

    Attributes:
        manifest_path, begun_path: str, the paths of the manifests of finished data and of unfinished data.
    """

    def __init__(self, problem, path):
        self.problem = problem
        self.path = os.fspath(path) or os.curdir
        self.manifest_path = manifest_path(problem, self.path)
        self.begun_path = f"{self.manifest_path}.begun"

    def lock(self):
        """Returns a lock, a context manager, that keeps other processes from writing the data. Raises `UserError`."""
        return held_lock(f"{self.manifest_path}.lock", f"{self.path}: another t2t-datagen of {self.problem.name}")

    def records(self, split):
        """Returns the `Records` of a split. Raises `UserError` if no split has this name."""
        return Records(self.problem, self.path, named_split(split))

    @functools.cached_property
    def request(self):
        """Everything that determines the contents of the files, as JSON values (so that a tuple equals its list)."""
        problem = self.problem
        request = {
            "format": _FORMAT,
            "problem": problem.name,
            "random_seed": problem.random_seed,
            "max_cases": problem.max_cases,
            "shards": {split["split"]: split["shards"] for split in problem.dataset_splits},
            **problem.generation_settings(),
        }
        return json.loads(json.dumps(request))

    def finished(self):
        """Returns the manifest of finished data, or None if the manifest or another file is missing.

        Raises:
            UserError: the data were generated with different settings (the message names the first difference), or the
                size of a shard has changed since it was written.
        """
        problem, manifest = self.problem, find_manifest(self.problem, self.path)
        if not manifest:
            return None
        if change := Request(self.request, manifest["request"], self.request).first:
            raise UserError(
                f"{self.path} contains {problem.name} with {change.name} = {_value_text(change.stored)}, but you "
                f"requested {change.name} = {_value_text(change.requested)}. Choose another --data_dir, or "
                "delete its files."
            )
        if lost := self.request["shards"].keys() - manifest["splits"].keys():
            raise UserError(
                f"{self.manifest_path}: 'splits' lacks {', '.join(sorted(lost))}. Delete the file and run t2t-datagen "
                "again."
            )
        for split, facts in manifest["splits"].items():
            paths = problem.data_filepaths(split, self.path, facts["shards"], shuffled=True)
            if not all(map(files.exists, paths)):
                return None
            manifests.check_sizes(paths, facts["bytes"], "the same command again")
        vocabularies = [os.path.join(self.path, name) for name in manifest["vocabulary_files"]]
        return manifest if all(map(files.exists, vocabularies)) else None

    def is_begun(self):
        """Returns whether an earlier generation was started but did not finish."""
        return files.exists(self.begun_path)

    def begin(self):
        """Writes the manifest of begun data, and removes the unfinished output of a different request.

        Raises:
            UserError: the folder contains records that another program wrote.
        """
        stale = self._shards_and_chunks()
        begun = {"request": self.request, "chunks": sharding.CHUNK_FORMAT, "source": _source(self.problem)}
        if self.is_begun():
            earlier = read_begun(self.begun_path)
            del earlier["to_learn"]
            if not Request(begun, earlier).changes:
                return
            LOGGER.info(f"{self.problem.name}: replacing the unfinished output of a different request in {self.path}")
            self.remove_learned()
        elif not files.exists(self.manifest_path) and (foreign := [path for path in stale if ".chunk-" not in path]):
            raise UserError(
                f"{foreign[0]}: t2t-datagen did not write these records. Choose another --data_dir, or delete them."
            )
        for path in stale:
            files.remove(path)
        learned = self.problem.learned_files(self.path)
        to_learn = [path for path in learned if not files.exists(path)]
        if existing := [path for path in learned if path not in to_learn]:
            LOGGER.info(f"{existing[0]}: already exists and is used. To learn a vocabulary from this text, delete it")
        files.write_json(self.begun_path, begun | {"to_learn": list(map(os.path.basename, to_learn))})

    def remove_learned(self):
        """Removes the vocabularies that the unfinished generation has learned."""
        for name in read_begun(self.begun_path)["to_learn"]:
            files.remove_if_there(os.path.join(self.path, name))

    def end(self):
        """Removes the files that are needed only until generation finishes, such as chunks."""
        if self.is_begun():
            for paths in self.shards().values():
                sharding.remove_chunks(paths)
            files.remove(self.begun_path)

    def shards(self):
        """Returns {split: paths of its shards}."""
        return {
            split["split"]: self.problem.data_filepaths(split["split"], self.path, split["shards"], shuffled=True)
            for split in self.problem.dataset_splits
        }

    def leftovers(self):
        """Returns the paths of the existing vocabularies, shards and chunks, complete or not."""
        return [*self._shards_and_chunks(), *filter(files.exists, self.problem.learned_files(self.path))]

    def _shards_and_chunks(self):
        name, tags = re.escape(self.problem.dataset_filename()), "|".join(FILE_TAGS.values())
        shard = rf"{name}-(unshuffled-)?({tags})-\d{{5}}-of-\d{{5}}"
        return files.list_files(self.path, rf"{shard}(\.chunk-.*)?(\.incomplete|{re.escape(files.INCOMPLETE)})?")

    def outputs(self):
        """Returns the paths of all files that generation writes or removes."""
        paths = [self.manifest_path, self.begun_path, *self.leftovers(), *self.problem.learned_files(self.path)]
        paths += [*self.problem.configuration_files(self.path), *itertools.chain(*self.shards().values())]
        return list(dict.fromkeys(paths))


def _value_text(value):
    if isinstance(value, dict):
        parts = {key: f"{part[:12]}…" if key == "sha256" else _value_text(part) for key, part in value.items()}
        return ", ".join(f"{key}: {part}" for key, part in parts.items())
    return " and ".join(map(_value_text, value)) if isinstance(value, list) else str(value)


def _source(problem):
    """Returns the SHA-256 of the problem's module, because generation must not resume after this code has changed."""
    try:
        return hashlib.sha256(inspect.getsource(inspect.getmodule(type(problem))).encode()).hexdigest()
    except (OSError, TypeError):
        return ""


def encoder_files(problem, folder):
    """Returns the files in a folder that a problem's encoders read.

    `Problem.vocabulary_files` lists the vocabularies. Other files that `feature_encoders` reads, such as a list of
    labels, are found by calling `feature_encoders` with a folder that contains only the files found so far: the error
    names a missing file. A file outside of the folder cannot be copied, so a warning about it is logged.

    Args:
        problem: Problem.
        folder: str, a data folder or the folder of a run.

    Returns:
        {path relative to the folder: path}.

    Raises:
        UserError: a file is missing, or the encoders made from copies of these files differ from the original ones.
    """
    paths = {}
    for path in problem.vocabulary_files(folder):
        if (name := _relative(path, folder)) is None:
            LOGGER.warning(
                f"{path}: {problem.name} reads this file, which is outside of {folder} and cannot be copied with the "
                f"run. Keep it there, or move it into {folder}."
            )
        else:
            paths[name] = path
    expected = _fingerprints(problem.open_encoders(folder))
    with tempfile.TemporaryDirectory() as copies:
        while True:
            files.copy_files(paths, copies)
            try:
                # a copy of the problem is used, because `feature_encoders` may store the folder in the problem
                encoders = copy.copy(problem).open_encoders(copies)
            except Exception as error:  # the user's code may raise any exception
                name = _named_in(str(error), copies)
                if name is None or name in paths or not files.exists(os.path.join(folder, name)):
                    reason = first_line(error).replace(copies, folder)
                    raise _incomplete(
                        problem, folder, paths, f"with copies of only these files, it fails: {reason}"
                    ) from error
                paths[name] = os.path.join(folder, name)
                continue
            if _fingerprints(encoders) != expected:
                raise _incomplete(problem, folder, paths, "with copies of only these files, the encoders differ")
            return paths


def _incomplete(problem, folder, paths, what):
    return UserError(
        f"{problem.name}: feature_encoders reads more files in {folder} than {', '.join(paths) or 'none'}: {what}. "
        "Expected vocabulary_files to return the paths of all files that it reads."
    )


def _fingerprints(encoders):
    return {feature: getattr(encoder, "fingerprint", None) for feature, encoder in encoders.items()}


def _relative(path, folder):
    """Returns a path relative to the folder, or None if the path is outside of the folder."""
    path, folder = full_path(path), full_path(folder).rstrip("/") + "/"
    return path.removeprefix(folder) if path.startswith(folder) else None


def _named_in(message, folder):
    """Returns the first path in an error message that is inside the folder, as a relative path, or None."""
    match = re.search(re.escape(folder) + r"/([^:;\n'\"]+)", message)
    return match[1] if match and ".." not in match[1].split("/") else None
