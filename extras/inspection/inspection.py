"""Describes data written by t2t-datagen, and the batches that an hparams set would form from these data.

Counts are read from the manifest. Everything that needs ids is computed from a sample, so the time that it takes does
not depend on the size of the corpus.
"""

import dataclasses
import functools
import math
import os
import re

import numpy as np
import tensorflow as tf

from t2t_lite.cli.console import table
from t2t_lite.data import manifests
from t2t_lite.data.example_reader import ExampleReader
from t2t_lite.data.records import Records
from t2t_lite.data.splits import FILE_TAGS, DatasetSplit
from t2t_lite.errors import LOGGER, Failure, UserError, counted
from t2t_lite.extras.inspection import length_histogram
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, SentencePieceEncoder

_EXAMPLES, _WITH_PIECES = 10, 2
_LONGEST_TEXT = 400  # maximum number of characters shown of a text
_PERCENTILES = (50, 90, 99, 100)


@dataclasses.dataclass(frozen=True)
class Side:
    """One feature of the training examples, such as the inputs.

    Attributes:
        name: str, the feature, such as "inputs".
        title: str, the feature with its language, such as "inputs (en)".
        encoder: TextEncoder, or None if the feature has none.
        lengths: {number of ids with EOS: number of examples}, for all examples, or for the sample if the manifest has
            no counts.
        ids: list of lists, the ids of the sample, without EOS and padding.
    """

    name: str
    title: str
    encoder: object
    lengths: dict
    ids: list

    @functools.cached_property
    def texts(self):
        """The sample's ids decoded to texts."""
        return [self.encoder.decode(ids) if self.encoder else " ".join(map(str, ids)) for ids in self.ids]

    def share_of(self, is_wanted):
        """Returns the share of ids, from 0 to 1, for which `is_wanted(id)` is true."""
        values, counts = np.unique(np.concatenate([*self.ids, np.zeros(0, int)]), return_counts=True)
        return sum(count for i, count in zip(values, counts, strict=True) if is_wanted(int(i))) / max(1, counts.sum())


def inspect_data(problem, data_dir, hparams, set_name="these hyperparameters", sample_size=20_000):
    """Yields paragraphs about a problem's data; the last paragraph is the path of the histogram.

    Args:
        problem: Problem. Inputs and targets are shown as a model sees them, with the effects of `_rev` and `_copy`.
        data_dir: str.
        hparams: HParams that determine the batches.
        set_name: str, how the paragraphs refer to the hyperparameters.
        sample_size: int, number of examples in the sample.

    Raises:
        UserError: the data are not finished (the message contains the command that generates them); a shard is missing,
            is damaged, or has the wrong size; or the records do not match the vocabulary.
    """
    in_files = problem.open_encoders(data_dir)
    Records(problem, data_dir, DatasetSplit.TRAIN).check_vocabulary(in_files)
    splits = _find_splits(problem, data_dir)
    records = splits[DatasetSplit.TRAIN]
    paths, facts = records.paths, records.facts
    encoders = problem.get_feature_encoders(data_dir)
    reader = ExampleReader(problem, hparams, "train", paths, encoders)
    sample, sample_facts = _read_sample(reader, sample_size)
    is_exact = bool(facts)
    if is_exact:
        manifests.check_ids(facts, in_files, paths[0])
        facts = records.seen_facts(hparams, facts)
    facts = facts or sample_facts
    sides = _sides(problem, encoders, facts, sample)
    yield f"{problem.full_name} in {data_dir}\n\n{_splits_text(problem, splits)}"
    yield _vocabulary_text(sides)
    yield _examples_text(sides)
    yield _sample_text(sides, facts["examples"] if is_exact else None, len(paths))
    longest = manifests.longest_row(problem, hparams)
    examples, dropped = manifests.count_kept(facts["lengths"], longest, hparams.min_length)
    yield _lengths_text(sides, examples, dropped, hparams, longest, set_name, is_exact)
    if examples:
        statistics = length_histogram.measure_batches(problem, hparams, paths, encoders, examples if is_exact else None)
        titles = {side.name: side.title for side in sides}
        titles = [titles.get(name, name) for name in problem.features]
        yield _batches_text(titles, statistics, examples if is_exact else None, hparams, set_name)
    path = os.path.join(data_dir, f"{problem.full_name}-lengths.png")
    subject = f"{'' if is_exact else 'a sample of '}{facts['examples']:,} training examples"
    lengths = {side.title: side.lengths for side in sides}
    try:
        length_histogram.write_histogram(path, lengths, longest, f"{problem.full_name}: {subject}")
    except (UserError, Failure) as error:  # for example, if the folder is read-only
        LOGGER.warning(f"{error} The histogram of lengths was not written.")
        return
    yield f"lengths as a picture: {path}"


# Reading.


def _find_splits(problem, data_dir):
    """Returns {split: Records} for all splits that exist; the training split must exist."""
    names = manifests.find_manifest(problem, data_dir).get("splits", {})
    splits = [Records(problem, data_dir, split) for split in FILE_TAGS]
    return {
        records.split: records for records in splits if records.split in (DatasetSplit.TRAIN, *names) or records.exist()
    }


def _read_sample(reader, size):
    """Reads the first examples of every shard, about `size` in all.

    Returns ({feature: list of ids}, the facts about these examples).
    """
    shards = tf.data.Dataset.from_tensor_slices(reader.paths)
    count = -(-size // len(reader.paths))
    first = shards.flat_map(lambda path: tf.data.TFRecordDataset(path).take(count))
    pools = reader.batched(first, count).map(reader.parse)
    sample, facts = {name: [] for name in pools.element_spec}, manifests.Facts(pools.element_spec)
    with reader.naming_damage():
        for pool in pools:
            facts.add_batch(pool)
            for name, ids in pool.items():
                sample[name] += ids.to_list()
    return sample, facts.as_json()


def _sides(problem, encoders, facts, sample):
    languages = dict(zip(("inputs", "targets"), problem.languages or (None, None), strict=True))
    return [
        Side(
            name,
            f"{name} ({languages[name]})" if languages.get(name) else name,
            encoder,
            {int(length): count for length, count in facts["side_lengths"][name].items()},
            rows if problem.features.get(name) == 1 else [_without_end(ids, encoder) for ids in rows],
        )
        for name, rows in sample.items()
        # A feature that only records have, such as the alternative row of next_sentence_own, is like the targets.
        for encoder in [encoders.get(name if name in problem.features else "targets")]
    ]


def _without_end(ids, encoder):
    hidden = (PAD_ID,) if isinstance(encoder, ClassLabelEncoder) else (EOS_ID, PAD_ID)  # id 1 may be a class
    return [i for i in ids if i not in hidden]


# Paragraphs.


def _splits_text(problem, splits):
    names = problem.record_features
    rows = [("", "examples", *(f"tokens, {name}" for name in names), "shards", "left out")]
    for split, records in splits.items():
        paths, facts = records.paths, records.facts
        if not facts:
            rows.append((FILE_TAGS[split], "not counted", *("" for _ in names), f"{len(paths)}", ""))
            continue
        tokens = problem.maybe_reverse_and_copy(facts["tokens"])
        removed = facts.get("removed") or {}
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in removed.items())
        counts = (f"{count:,}" for count in (facts["examples"], *map(tokens.get, names), len(paths)))
        rows.append((FILE_TAGS[split], *counts, reasons or ("0" if "removed" in facts else "")))
    return "\n".join(table(rows, left=(0, len(rows[0]) - 1)))


def _vocabulary_text(sides):
    sides = [side for side in sides if side.encoder]
    if len(sides) == 2 and sides[0].encoder.fingerprint == sides[1].encoder.fingerprint:
        return f"vocabulary of both sides: {_described(sides[0].encoder)}"
    width = max((len(side.name) for side in sides), default=0) + 1
    return "\n".join(f"vocabulary of {f'{side.name}:':<{width}} {_described(side.encoder)}" for side in sides)


def _described(encoder):
    return f"{type(encoder).__name__}, {encoder.vocab_size:,} entries, SHA-256 {encoder.fingerprint[:12]}…"


def _examples_text(sides):
    count = len(sides[0].ids)
    indices = [at * count // _EXAMPLES for at in range(_EXAMPLES)] if count > _EXAMPLES else range(count)
    lines = ["examples"]
    for number, at in enumerate(indices, 1):
        for place, side in enumerate(sides):
            text = side.texts[at]
            pieces = " ".join(side.encoder.pieces(side.ids[at])) if side.encoder else text
            lines.append(f"{number if place == 0 else '':>4}  {printable(text)}")
            if number <= _WITH_PIECES and pieces != text:
                lines.append(f"      {printable(pieces)}")
        lines.append("")
    return "\n".join(lines[:-1])


def printable(text):
    """Truncates a text for display, and replaces line ends and other control characters."""
    text = "".join(c if c.isprintable() else "\u21b5" if c == "\n" else "\ufffd" for c in text)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text):,} characters)"


def _sample_text(sides, examples, shards):
    count = len(sides[0].ids)
    rows = [(f"of a sample of {counted(count, 'example')}", *(side.title for side in sides))]
    words = [sum(len(text.split()) for text in side.texts) for side in sides]
    characters = [sum(len("".join(text.split())) for text in side.texts) for side in sides]
    tokens = [sum(map(len, side.ids)) for side in sides]
    rows.append(("tokens per word", *(_ratio(n, of) for n, of in zip(tokens, words, strict=True))))
    rows.append(("tokens per character", *(_ratio(n, of) for n, of in zip(tokens, characters, strict=True))))
    rows.append(("spelled in bytes", *(_byte_share(side) for side in sides)))
    rows.append(("unknown", *(_unknown_share(side) for side in sides)))
    shards_text = f"each of {shards:,} shards, which are" if shards > 1 else "the shard, which is"
    where = "all examples" if count == examples else f"the first examples of {shards_text} shuffled"
    note = f"({where}; words are separated by spaces; EOS and spaces are not counted)"
    return "\n".join([*table(rows, left=(0,)), note])


def _ratio(count, of):
    return f"{count / of:.2f}" if of else "-"


def _byte_share(side):
    """Returns the share of ids from SentencePiece's byte fallback, or "-" for other encoders."""
    if not isinstance(side.encoder, SentencePieceEncoder):
        return "-"
    share = side.share_of(lambda i: re.fullmatch("<0x[0-9A-F]{2}>", side.encoder.pieces([i])[0]))
    return f"{share:.2%}"


def _unknown_share(side):
    unknown = getattr(side.encoder, "unknown_id", None)
    return "-" if unknown is None else f"{side.share_of(lambda i: i == unknown):.2%}"


def _lengths_text(sides, examples, dropped, hparams, longest, set_name, is_exact):
    rows = [("ids per example, EOS included", *(side.title for side in sides))]
    for percent in _PERCENTILES:
        name = "longest" if percent == 100 else f"{percent} % have at most"
        rows.append((name, *(f"{length_histogram.percentile(side.lengths, percent):,}" for side in sides)))
    limits = f"max_length={longest}" + (f", min_length={hparams.min_length}" if hparams.min_length else "")
    of = f"{examples + dropped:,} examples" + ("" if is_exact else " of the sample")
    left_out = f"{dropped:,} of {of} are left out ({dropped / (examples + dropped):.2%})"
    return "\n".join([*table(rows, left=(0,)), f"{limits} ({set_name}): {left_out}"])


def _batches_text(titles, statistics, examples, hparams, set_name):
    """Describes `BatchShapes`; `examples` is the number of examples per pass, or None if unknown."""
    rows = [(f"of {len(statistics.shapes):,} batches", *titles, "both" if len(titles) == 2 else "all")]
    rows.append(("fill", *(f"{share:.1%}" for share in statistics.fill)))
    tokens = statistics.tokens.mean(0)
    rows.append(("tokens per batch", *(f"{count:,.0f}" for count in (*tokens, tokens.sum()))))
    for name, extreme in (("smallest width", np.min), ("largest width", np.max)):
        rows.append((name, *(f"{width:,}" for width in extreme(statistics.shapes[:, 1:], axis=0)), ""))
    lines = [f"batches of {set_name}: batch_size={hparams.batch_size:,} ids per side, on one replica"]
    lines += table(rows, left=(0,))
    few, many = statistics.shapes[:, 0].min(), statistics.shapes[:, 0].max()
    lines.append(
        f"rows per batch: {statistics.mean_rows:,.0f} ({few:,} to {many:,}); distinct shapes: {statistics.distinct:,}"
    )
    if examples:
        batches = math.ceil(examples / statistics.mean_rows)
        accumulation = hparams.gradient_accumulation_steps
        of = f" of {accumulation} batches" if accumulation > 1 else ""
        lines.append(f"a pass over the data: about {batches:,} batches, {-(-batches // accumulation):,} steps{of}")
    return "\n".join(lines)
