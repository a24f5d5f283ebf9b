"""Generates a problem's vocabulary, shards and manifest. An interrupted run can be resumed and gives the same files."""

import itertools
import re

import numpy as np
import tensorflow as tf

from t2t_lite import __version__, files
from t2t_lite.cli.console import Progress
from t2t_lite.data import record_format, sharding
from t2t_lite.data.folder import DataFolder, encoder_files
from t2t_lite.data.manifests import MOST_SHARDS
from t2t_lite.data.splits import FILE_TAGS, DatasetSplit
from t2t_lite.errors import LOGGER, UserError, counted, shown
from t2t_lite.text.vocabulary import ByteTextEncoder, TextEncoder

_EXAMPLES = 4096  # number of examples, at the start of a shuffled shard, in which unknown ids are counted
# highest normal fraction of unknown ids and byte pieces; a vocabulary learned from similar text stays far below it
_MOST = 0.05
_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")


def generate(problem, data_dir, tmp_dir):
    """Writes the data of `problem` into `data_dir`, unless they are already complete there.

    Raises:
        UserError: `data_dir` contains data that were generated with different settings (the message names the first
            difference), or the input is invalid.
    """
    folder = DataFolder(problem, data_dir)
    if not problem.overrides("feature_encoders"):
        problem.feature_encoders(folder.path)  # raises an error now instead of after hours of generation
    _check_splits(problem)
    files.check_outputs(problem.source_files(), {"--data_dir": folder.outputs()})
    if not folder.is_begun() and _is_done(folder):
        return
    with folder.lock():
        if _is_done(folder):  # another process has just finished, or was killed before it cleaned up
            folder.end()
        else:
            files.check_writable(folder.path)
            _write_all(folder, tmp_dir)


def _check_splits(problem):
    splits = problem.dataset_splits
    names = [part["split"] for part in splits if _is_split(part)]
    if not names or len({*names}) < len(splits):
        raise UserError(
            f"{problem.name}: dataset_splits is {shown(splits)}. Expected a list such as "
            f"[{{'split': 'train', 'shards': 10}}], with each of {', '.join(FILE_TAGS)} at most once "
            f"and 1 to {MOST_SHARDS:,} shards."
        )
    for split, shards in ((part["split"], part["shards"]) for part in splits):
        if split in problem.ordered_splits and not (problem.is_generate_per_split and shards == 1):
            raise UserError(
                f"{problem.name}: the records of the {FILE_TAGS[split]} set keep the order of the text, see "
                f"ordered_splits. Expected 1 shard, not {shards}, and is_generate_per_split = True."
            )


def _is_split(part):
    is_known = isinstance(part, dict) and part.get("split") in FILE_TAGS
    return is_known and isinstance(part.get("shards"), int) and 1 <= part["shards"] <= MOST_SHARDS


def _is_done(folder):
    manifest = folder.finished()
    if manifest:
        LOGGER.info(f"{folder.problem.name}: already in {folder.path} ({_summary(manifest)}); nothing to do")
    return bool(manifest)


def _write_all(folder, tmp_dir):
    problem, data_dir = folder.problem, folder.path
    folder.begin()
    try:
        problem.prepare_generation(data_dir, tmp_dir)
        splits = _write_splits(folder, tmp_dir)
    except BaseException as error:
        if isinstance(error, sharding.ChangedSource):
            folder.remove_learned()
        if not folder.leftovers():
            files.remove(folder.begun_path)
        if isinstance(error, SystemExit):
            raise UserError(
                f"{problem.name}: its code called sys.exit({error.code!r}) during generation. Expected an exception."
            ) from error
        raise
    vocabulary = {
        feature: {"class": type(encoder).__name__, "size": encoder.vocab_size, "sha256": encoder.fingerprint}
        for feature, encoder in problem.open_encoders(data_dir).items()
    }
    manifest = {
        "version": __version__,
        "request": folder.request,
        "splits": splits,
        "vocabulary": vocabulary,
        "vocabulary_files": list(encoder_files(problem, data_dir)),
    }
    files.write_json(folder.manifest_path, manifest)
    folder.end()
    LOGGER.info(f"{problem.name}: written to {data_dir} ({_summary(manifest)})")
    report_coverage(folder)


def _write_splits(folder, tmp_dir):
    """Writes the shards of all splits; returns {split: facts}."""
    shards = folder.shards()
    if folder.problem.is_generate_per_split:
        return {split: _write(folder, tmp_dir, {split: paths})[split] for split, paths in shards.items()}
    return _write(folder, tmp_dir, shards)


def _write(folder, tmp_dir, shards):
    """Distributes one stream of examples over the shards of one or all splits; returns {split: facts}."""
    problem = folder.problem
    split = next(iter(shards)) if problem.is_generate_per_split else DatasetSplit.TRAIN
    progress = Progress(f"{problem.name}: {' and '.join(map(FILE_TAGS.get, shards))}", "examples")
    paths = [path for split_paths in shards.values() for path in split_paths]
    layout = {
        "seed": problem.random_seed,
        "groups": [len(split_paths) for split_paths in shards.values()],
        "features": problem.record_features,
        "is_ordered": split in problem.ordered_splits,
    }
    source = Source(problem, folder.path, tmp_dir, split)
    if problem.write_shards:
        facts_of_splits, source_counts = problem.write_shards(source, paths, **layout)
    else:
        samples, encode = source.open()
        facts_of_splits = sharding.write_shards(
            progress.watch(samples), paths, encode=encode, num_workers=problem.num_workers, **layout
        )
        source_counts = source.counts()
        progress.done()
    for name, counts in zip(shards, facts_of_splits, strict=True):
        if not counts["examples"]:
            sharding.remove_chunks(paths)
            for path in paths:
                files.remove(path)
            raise no_example(problem, name) if len(shards) == 1 else _too_few(problem, name, facts_of_splits)
    for reason, count in source_counts["removed"].items():
        if count:
            LOGGER.info(f"{progress.title}: {count:,} left out ({reason})")
    facts = {
        name: {"shards": len(split_paths), **counts}
        for (name, split_paths), counts in zip(shards.items(), facts_of_splits, strict=True)
    }
    facts[split]["removed"] = source_counts["removed"]
    if problem.is_generate_per_split and source_counts["units"]:
        facts[split]["units"] = source_counts["units"]
    return facts


class Source:
    """The samples of a split, which are generated only in the process that reads them, on this or another machine.

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
        """Returns (iterator of samples, function that encodes a list of samples, or None).

        The iterator raises `UserError` at its end if there was no sample.
        """
        self._problem.removed.clear()
        self._problem.unit_counts.clear()
        samples, encode = self._problem.samples_to_encode(*self._folders, self._split)
        return self._some(itertools.islice(samples, self._problem.max_cases or None)), encode

    def counts(self):
        """Returns {"removed": {reason: number}, "units": {unit: number}}; call it after all samples have been read."""
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
    return UserError(f"{problem.name}: the {FILE_TAGS[split]} set has no example. Expected {problem.smallest_corpus}.")


def _too_few(problem, split, facts_of_splits):
    count = sum(facts["examples"] for facts in facts_of_splits)
    return UserError(
        f"{problem.name}: if {count:,} examples are distributed over the shards of dataset_splits, none are left for "
        f"the {FILE_TAGS[split]} set. Expected more examples (--max_cases), or a larger share of the shards."
    )


def _summary(manifest):
    examples = [
        counted(facts["examples"], f"{FILE_TAGS[split]} example") for split, facts in manifest["splits"].items()
    ]
    sizes = sorted({facts["size"] for facts in manifest["vocabulary"].values()})
    return f"{', '.join(examples)}, vocabulary of {' and '.join(f'{size:,}' for size in sizes)}"


def report_coverage(folder):
    """Logs the shares of unknown ids and of byte pieces in the training data, unless they round to 0.0 %.

    A share above 5 % is logged as a warning, because words then become many byte pieces or the same unknown id.
    """
    problem, records = folder.problem, folder.records(DatasetSplit.TRAIN)
    if not records.exist():
        return
    batch = next(iter(tf.data.TFRecordDataset(records.paths).batch(_EXAMPLES)))
    example = record_format.parse_batch(batch, problem.record_features)
    for feature, encoder in problem.open_encoders(folder.path).items():
        if feature not in example or not isinstance(encoder, TextEncoder):
            continue
        shares = coverage(encoder, example[feature].flat_values.numpy())
        if shares["<unk>"] and len(_bytes_of(encoder)) >= 256:  # fewer cannot spell every text
            LOGGER.warning(
                f"{problem.name}: {feature} contain <unk>, although the vocabulary can spell every text. Perhaps "
                "generate_encoded_samples computes ids: unlike in tensor2tensor, those of additional_reserved_tokens "
                "begin at 3."
            )
        if any(round(100 * share, 1) for share in shares.values()):
            shares_text = " and ".join(f"{100 * share:.1f} % {name}" for name, share in shares.items())
            text = f"{problem.name}: {feature} have {shares_text} among their ids"
            if sum(shares.values()) > _MOST:
                LOGGER.warning(
                    f"{text}: the vocabulary does not cover the text well. Perhaps it is for another language. "
                    "Expected a vocabulary learned from similar text."
                )
            else:
                LOGGER.info(text)


def coverage(encoder, ids):
    """Returns the shares of unknown ids and of byte pieces among ids, as {"<unk>": share, "byte pieces": share}.

    Args:
        encoder: TextEncoder. If the encoder encodes bytes, both shares are 0.
        ids: int [n].
    """
    counts = np.bincount(ids, minlength=encoder.vocab_size)
    unknown = counts[encoder.unknown_id] if encoder.unknown_id is not None else 0
    in_bytes = 0 if isinstance(encoder, ByteTextEncoder) else counts[_bytes_of(encoder)].sum()
    return {"<unk>": unknown / len(ids), "byte pieces": in_bytes / len(ids)}


def _bytes_of(encoder):
    """Returns the ids of pieces that are single bytes or incomplete characters."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    texts = encoder.piece_bytes or [b""] * len(pieces)
    return [
        i
        for i, (piece, text) in enumerate(zip(pieces, texts, strict=True))
        if _BYTE_PIECE.fullmatch(piece) or "\ufffd" in text.decode("utf-8", errors="replace")
    ]
