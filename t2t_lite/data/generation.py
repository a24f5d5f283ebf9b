"""Writes a problem's vocabulary, shards and manifest, once.

A manifest that contains only the request is written first, under a name that ends in `.begun`. The full manifest is
written last, so its existence means that the data are finished. If generation was interrupted, the same request resumes
with the existing vocabulary and chunks, and another request starts over. The resulting files are the same either way.
"""

import hashlib
import inspect
import itertools
import logging
import os
import re

from t2t_lite import __version__, files
from t2t_lite.cli.console import Progress
from t2t_lite.data import sharding, split_facts
from t2t_lite.data.encoder_files import encoder_files
from t2t_lite.data.manifests import find_manifest, manifest_path, read_begun
from t2t_lite.data.splits import FILE_TAGS, DatasetSplit
from t2t_lite.data.vocabulary_coverage import report_coverage
from t2t_lite.errors import UserError
from t2t_lite.files.folders import held_lock

_LOGGER = logging.getLogger("t2t_lite")
_FORMAT = 2  # increase it when the same request gives different files


def generate(problem, data_dir, tmp_dir):
    """Writes the data of `problem` into `data_dir`. Does nothing if the same request is already finished there.

    Raises:
        UserError: `data_dir` contains the output of another request (the message names the difference), or the input
            is invalid.
    """
    _check_order(problem)
    files.check_outputs(problem.source_files(), {"--data_dir": _outputs(problem, data_dir)})
    request = make_request(problem)
    if not files.exists(_begun_path(problem, data_dir)) and _is_done(problem, data_dir, request):
        return
    files.make_folder(data_dir)
    with held_lock(_lock_path(problem, data_dir), f"{data_dir}: another t2t-datagen of {problem.name}"):
        if _is_done(problem, data_dir, request):  # by a killed process before it cleaned up, or by one just finished
            _end(problem, data_dir)
        else:
            files.check_writable(data_dir)
            _write_all(problem, data_dir, tmp_dir, request)


def _check_order(problem):
    for split, shards in ((split["split"], split["shards"]) for split in problem.dataset_splits):
        if problem.is_generate_per_split and split in problem.ordered_splits and shards != 1:
            raise UserError(
                f"{problem.name}: dataset_splits has {shards} shards of the {FILE_TAGS[split]} set, whose records keep "
                "the order of the text. Expected 1."
            )


def _is_done(problem, data_dir, request):
    manifest = find_finished(problem, data_dir, request)
    if manifest:
        _LOGGER.info(f"{problem.name}: already in {data_dir} ({_summary(manifest)}); nothing to do")
    return bool(manifest)


def _write_all(problem, data_dir, tmp_dir, request):
    _begin(problem, data_dir, request)
    try:
        problem.prepare_generation(data_dir, tmp_dir)
        splits = _write_splits(problem, data_dir, tmp_dir)
    except BaseException as error:
        if not any(_leftovers(problem, data_dir)):
            files.remove(_begun_path(problem, data_dir))
        if isinstance(error, SystemExit):
            raise UserError(
                f"{problem.name}: its code called sys.exit({error.code!r}) while it generated. Expected an exception."
            ) from error
        raise
    vocabulary = {
        feature: {"class": type(encoder).__name__, "size": encoder.vocab_size, "sha256": encoder.fingerprint}
        for feature, encoder in problem.open_encoders(data_dir).items()
    }
    manifest = {
        "version": __version__,
        "request": request,
        "splits": splits,
        "vocabulary": vocabulary,
        "vocabulary_files": list(encoder_files(problem, data_dir)),
    }
    files.write_json(manifest_path(problem, data_dir), manifest)
    _end(problem, data_dir)
    _LOGGER.info(f"{problem.name}: written to {data_dir} ({_summary(manifest)})")
    report_coverage(problem, data_dir)


def make_request(problem):
    """Returns everything that the files depend on, as JSON values."""
    return {
        "format": _FORMAT,
        "problem": problem.name,
        "random_seed": problem.random_seed,
        "max_cases": problem.max_cases,
        "shards": {split["split"]: split["shards"] for split in problem.dataset_splits},
        **problem.generation_settings(),
    }


def find_finished(problem, data_dir, request):
    """Returns the manifest of finished data, or None if there is none or a file is missing.

    Raises:
        UserError: `data_dir` contains finished data of another request (the message names the first difference), or
            the size of a shard has changed since it was written.
    """
    manifest = find_manifest(problem, data_dir)
    if not manifest:
        return None
    settings = manifest.get("request", {})
    for key, value in {**dict.fromkeys(problem.newer_settings), **request}.items():
        if settings.get(key) != value:
            raise UserError(
                f"{data_dir} contains {problem.name} with {key} = {_value_text(settings.get(key))}, but you requested "
                f"{key} = {_value_text(value)}. Choose another --data_dir, or delete its files."
            )
    if lost := request["shards"].keys() - manifest["splits"].keys():
        raise UserError(
            f"{manifest_path(problem, data_dir)}: 'splits' lacks {', '.join(sorted(lost))}. Delete the file and run "
            "t2t-datagen again."
        )
    for split, facts in manifest["splits"].items():
        paths = problem.data_filepaths(split, data_dir, facts["shards"], shuffled=True)
        if not all(map(files.exists, paths)):
            return None
        if "bytes" in facts:
            split_facts.check_sizes(paths, facts["bytes"], "the same command again")
    vocabularies = [os.path.join(data_dir, name) for name in manifest.get("vocabulary_files", ())]
    return manifest if all(map(files.exists, vocabularies or problem.learned_files(data_dir))) else None


def _value_text(value):
    if isinstance(value, dict):
        parts = {key: f"{part[:12]}…" if key == "sha256" else _value_text(part) for key, part in value.items()}
        return ", ".join(f"{key}: {part}" for key, part in parts.items())
    return " and ".join(map(_value_text, value)) if isinstance(value, list) else str(value)


def _begin(problem, data_dir, request):
    """Records the request; removes another's unfinished output. Raises `UserError` for records of another program."""
    _, stale = _leftovers(problem, data_dir)
    begun = {"request": request, "chunks": sharding.CHUNK_FORMAT, "source": _source(problem)}
    if files.exists(_begun_path(problem, data_dir)):
        earlier = read_begun(_begun_path(problem, data_dir))
        names = earlier.pop("to_learn")
        if earlier == begun:
            return
        _LOGGER.info(f"{problem.name}: replacing the unfinished output of another request in {data_dir}")
        stale += filter(files.exists, (os.path.join(data_dir, name) for name in names))
    elif not find_manifest(problem, data_dir) and (records := [path for path in stale if ".chunk-" not in path]):
        raise UserError(
            f"{records[0]}: t2t-datagen did not write these records. Choose another --data_dir, or delete them."
        )
    for path in stale:
        files.remove(path)
    vocabularies = [path for path in problem.learned_files(data_dir) if not files.exists(path)]
    begun["to_learn"] = list(map(os.path.basename, vocabularies))
    files.write_json(_begun_path(problem, data_dir), begun)


def _end(problem, data_dir):
    """Removes the files that only an unfinished generation needs."""
    if files.exists(_begun_path(problem, data_dir)):
        for paths in _shards(problem, data_dir).values():
            sharding.remove_chunks(paths)
        files.remove(_begun_path(problem, data_dir))


def _lock_path(problem, data_dir):
    return manifest_path(problem, data_dir) + ".lock"


def _begun_path(problem, data_dir):
    return manifest_path(problem, data_dir) + ".begun"


def _source(problem):
    """Returns the SHA-256 of the problem's module, since output of other code must not be continued."""
    try:
        return hashlib.sha256(inspect.getsource(inspect.getmodule(type(problem))).encode()).hexdigest()
    except (OSError, TypeError):
        return ""


def _leftovers(problem, data_dir):
    """Returns the existing vocabulary files, and the existing shards and chunks."""
    vocabularies = [path for path in problem.learned_files(data_dir) if files.exists(path)]
    name, tags = re.escape(problem.dataset_filename()), "|".join(FILE_TAGS.values())
    shard = rf"{name}-(unshuffled-)?({tags})-\d{{5}}-of-\d{{5}}"
    return vocabularies, files.list_files(
        data_dir, rf"{shard}(\.chunk-.*)?(\.incomplete|{re.escape(files.INCOMPLETE)})?"
    )


def _outputs(problem, data_dir):
    """Returns the paths that generation writes or removes."""
    vocabularies, leftovers = _leftovers(problem, data_dir)
    paths = [manifest_path(problem, data_dir), _begun_path(problem, data_dir), *leftovers, *vocabularies]
    paths += [*problem.learned_files(data_dir), *problem.configuration_files(data_dir)]
    return list(dict.fromkeys([*paths, *itertools.chain.from_iterable(_shards(problem, data_dir).values())]))


def _shards(problem, data_dir):
    """Returns {split: paths of its shards}."""
    return {
        split["split"]: problem.data_filepaths(split["split"], data_dir, split["shards"], shuffled=True)
        for split in problem.dataset_splits
    }


def _write_splits(problem, data_dir, tmp_dir):
    """Writes all shards; returns {split: facts}."""
    shards = _shards(problem, data_dir)
    if problem.is_generate_per_split:
        return {split: _write(problem, data_dir, tmp_dir, {split: paths})[split] for split, paths in shards.items()}
    return _write(problem, data_dir, tmp_dir, shards)


def _write(problem, data_dir, tmp_dir, shards):
    """Distributes one stream of examples over the shards of one or all splits; returns {split: facts}."""
    split = next(iter(shards)) if problem.is_generate_per_split else DatasetSplit.TRAIN
    progress = Progress(f"{problem.name}: {' and '.join(map(FILE_TAGS.get, shards))}", "examples")
    paths = [path for split_paths in shards.values() for path in split_paths]
    layout = {
        "seed": problem.random_seed,
        "groups": [len(split_paths) for split_paths in shards.values()],
        "features": problem.record_features,
        "is_ordered": problem.is_generate_per_split and split in problem.ordered_splits,
    }
    source = Source(problem, data_dir, tmp_dir, split)
    if problem.write_shards:
        facts_of_splits, noted = problem.write_shards(source, paths, **layout)
    else:
        samples, encode = source.open()
        facts_of_splits = sharding.write_shards(
            progress.watch(samples), paths, encode=encode, num_workers=problem.num_workers, **layout
        )
        noted = source.noted()
        progress.done()
    for name, counts in zip(shards, facts_of_splits, strict=True):
        if not counts["examples"]:
            sharding.remove_chunks(paths)
            for path in paths:
                files.remove(path)
            raise no_example(problem, name) if len(shards) == 1 else _too_few(problem, name, facts_of_splits)
    for reason, count in noted["removed"].items():
        if count:
            _LOGGER.info(f"{progress.title}: {count:,} left out ({reason})")
    facts = {
        name: {"shards": len(split_paths), **counts}
        for (name, split_paths), counts in zip(shards.items(), facts_of_splits, strict=True)
    }
    facts[split]["removed"] = noted["removed"]
    if problem.is_generate_per_split and noted["units"]:
        facts[split]["units"] = noted["units"]
    return facts


class Source:
    """The samples of one stream, opened by their reader: here or on another machine.

    Args:
        problem: Problem.
        data_dir, tmp_dir: str.
        split: a name in `DatasetSplit`.
    """

    def __init__(self, problem, data_dir, tmp_dir, split):
        self._problem = problem
        self._folders = data_dir, tmp_dir
        self._split = split

    def open(self):
        """Returns (iterator of samples, function that encodes a list of them, or None).

        The iterator raises `UserError` at its end if there was no sample.
        """
        self._problem.removed.clear()
        self._problem.unit_counts.clear()
        samples, encode = self._problem.samples_to_encode(*self._folders, self._split)
        return self._some(itertools.islice(samples, self._problem.max_cases or None)), encode

    def noted(self):
        """Returns {"removed": {reason: samples left out}, "units": {unit: its count}}, once all have been read."""
        return {"removed": dict(sorted(self._problem.removed.items())), "units": dict(self._problem.unit_counts)}

    def _some(self, samples):
        is_empty = True
        for sample in samples:
            is_empty = False
            yield sample
        if is_empty:
            raise no_example(self._problem, self._split)


def no_example(problem, split):
    """Returns the error for a split without examples."""
    return UserError(f"{problem.name}: no example for the {FILE_TAGS[split]} set. Expected {problem.smallest_corpus}.")


def _too_few(problem, split, facts_of_splits):
    count = sum(facts["examples"] for facts in facts_of_splits)
    return UserError(
        f"{problem.name}: {count:,} examples, dealt over the shards of dataset_splits, leave none for the "
        f"{FILE_TAGS[split]} set. Expected more (--max_cases), or a larger share of the shards."
    )


def _summary(manifest):
    examples = [f"{facts['examples']:,} {FILE_TAGS[split]} examples" for split, facts in manifest["splits"].items()]
    sizes = sorted({facts["size"] for facts in manifest["vocabulary"].values()})
    return f"{', '.join(examples)}, vocabulary of {' and '.join(f'{size:,}' for size in sizes)}"
