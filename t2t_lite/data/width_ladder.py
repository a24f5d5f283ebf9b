"""Chooses a few fixed shapes for the batches of a corpus, because XLA compiles one program per shape."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

MOST_SHAPES = 16
_MOST_CANDIDATES = 40  # candidate widths per side; 64 would take 1 s and, on news text, fill only 0.1 % more cells


@dataclasses.dataclass(frozen=True, eq=False)
class WidthLadder:
    """The allowed shapes of batches, from narrow to wide; a shape fits all examples that fit narrower shapes.

    A shape consists of a width per feature and as many rows as the budget allows. If all features had the same width,
    cells would be wasted when one feature is much longer than the others. For example, if targets are a fifth as long
    as inputs, 16 single widths fill 57 % of the cells, but 16 pairs of widths fill 90 %.

    Attributes:
        shapes: int32 [shapes, 1 + features], the number of rows and the width of each feature.
        features: tuple of str, the names of the features.
    """

    shapes: np.ndarray
    features: tuple = ("inputs", "targets")

    @property
    def widest(self):
        """The widths of the widest shape, {feature: int}."""
        return dict(zip(self.features, self.shapes[-1, 1:].tolist(), strict=True))

    def __str__(self):
        return ", ".join(shape_text(shape) for shape in self.shapes)

    def checked(self, pool):
        """Returns a pool, {feature: ragged}, with an assertion that every example fits into the widest shape."""
        fits = [tf.reduce_all(pool[name].row_lengths() <= width) for name, width in self.widest.items()]
        message = "an example is longer than the widest shape"
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(fits), [message])]):
            return tf.nest.map_structure(tf.identity, pool)  # `identity` makes the pool wait for the assertion

    def walk(self, pool, descending, carried):
        """Sorts a pool by the shape that each example needs, and plans full batches.

        Examples that do not fill a batch of their shape are carried into the next pool once. After that, they share a
        batch with examples of the next shape.

        Args:
            pool: {feature: ragged [n, (length)]}, as `checked` returns it.
            descending: bool, whether the widest examples come first.
            carried: int32, the number of examples that were carried from the previous pool. They are the first examples
                of `pool`.

        Returns:
            order: int32 [n], the sorted indices of the examples.
            bounds: int32 [batches + 1], the index in `order` at which each batch begins, then the end of the last
            batch.
            shape_of_batch: int32 [batches], the index of each batch's shape; -1 for examples that are to be carried.
        """
        rows, *widths = tf.unstack(tf.constant(self.shapes), axis=1)
        lengths = [tf.cast(pool[name].row_lengths(), tf.int32) for name in self.features]
        fits = [tf.searchsorted(width, length) for width, length in zip(widths, lengths, strict=True)]
        shape_of_example = functools.reduce(tf.maximum, fits)
        key = tf.where(descending, -shape_of_example, shape_of_example)
        order = tf.argsort(key, stable=True)
        key, shape_of_example, size = tf.gather(key, order), tf.gather(shape_of_example, order), tf.size(order)

        def close_batch(start, number, bounds, shape_of_batch):
            # For each shape: the shape that the last example of a batch needs if the batch begins at `start` and has as
            # many rows as this shape.
            last = tf.gather(shape_of_example, tf.minimum(start + rows, size) - 1)
            holds = tf.maximum(shape_of_example[start], last) <= tf.range(len(self.shapes))
            # index of the narrowest shape that fits the examples of the batch
            shape = tf.argmax(tf.cast(holds, tf.int32), output_type=tf.int32)
            end = start + rows[shape]
            end_of_kind = tf.searchsorted(key, key[start : start + 1], side="right")[0]
            is_mixed = (shape != shape_of_example[start]) | (end > end_of_kind)
            # among examples of one shape, carried examples come first
            waits = (end > size) | is_mixed & (order[start] >= carried)
            end, shape = tf.where(waits, end_of_kind, end), tf.where(waits, -1, shape)
            return end, number + 1, bounds.write(number + 1, end), shape_of_batch.write(number, shape)

        bounds, shape_of_batch = (
            tf.TensorArray(tf.int32, 1, dynamic_size=True, clear_after_read=False) for _ in range(2)
        )
        start = 0, 0, bounds.write(0, 0), shape_of_batch
        _, number, bounds, shape_of_batch = tf.while_loop(lambda start, *_: start < size, close_batch, start)
        return order, bounds.stack(), shape_of_batch.stack()[:number]

    def pad(self, pool, shape):
        """Pads ragged features with 0 to the shape with the index `shape`; returns {feature: int32 [rows, width]}."""
        _, *widths = tf.unstack(tf.gather(tf.constant(self.shapes), shape))
        widths = zip(self.features, widths, strict=True)
        return {name: pool[name].to_tensor(shape=tf.stack([-1, width])) for name, width in widths}


def shape_text(shape):
    """Formats a shape as "rows x width of the first feature x …"."""
    return " x ".join(map(str, shape))


def choose_ladder(lengths, longest, batch_size, most=MOST_SHAPES):
    """Returns the `WidthLadder` that needs the least padding for a sample of examples.

    The widths are optimal for the two features whose lengths vary most. Any other feature is as wide as its longest row
    among the examples of a shape.

    Args:
        lengths: {feature: int [examples]}, numbers of ids.
        longest: {feature: int}, the widths of the widest shape.
        batch_size: the limit on rows x width of the widest feature; a single row may exceed it.
        most: int, the maximum number of shapes.
    """
    rows = np.stack([np.append(lengths[name], longest[name]) for name in lengths], 1)
    two = np.sort(np.argsort(-rows.std(0), kind="stable")[:2])
    pairs = rows[:, two] if len(lengths) > 1 else np.pad(rows, [(0, 0), (0, 1)])
    nested = nested_widths(pairs, most)
    shape_of_row = np.max(
        [np.searchsorted(widths, feature_lengths) for widths, feature_lengths in zip(nested.T, pairs.T, strict=True)], 0
    )
    widths = np.zeros([len(nested), rows.shape[1]], int)
    np.maximum.at(widths, shape_of_row, rows)
    widths = np.maximum.accumulate(widths)
    widths[:, two] = nested[:, : len(two)]
    rows = np.maximum(1, batch_size // widths.max(1, keepdims=True))
    return WidthLadder(np.concatenate([rows, widths], 1).astype(np.int32), tuple(lengths))


def nested_widths(lengths, most):
    """Returns a sequence of non-decreasing pairs of widths that needs the fewest cells for the given lengths.

    An example is padded to the first pair that fits it. The dynamic program considers all nested pairs of lengths that
    occur. For a side with more than 40 different lengths, it considers only the 40 widths that are best for that side
    by itself.

    Args:
        lengths: int [examples, 2].
        most: int, the maximum number of pairs.

    Returns:
        int [pairs, 2], ascending. The last pair fits the longest row of each side.
    """
    sides = [_candidates(lengths, side) for side in (0, 1)]
    examples = np.zeros([len(side) for side in sides], int)
    np.add.at(examples, tuple(map(np.searchsorted, sides, lengths.T)), 1)
    fitting = examples.cumsum(0).cumsum(1)  # at [i, j], the number of examples that fit into width i and width j
    cells = sides[0][:, None] + sides[1]
    # at [i, j], the fewest cells for all examples that fit into these widths, with as many pairs as loop iterations
    least = np.full(fitting.shape, np.inf)
    least[0, 0] = 0
    choices = []
    for _ in range(most):
        longer, choice = least.copy(), {}
        for i, j in np.ndindex(fitting.shape):
            inner = np.s_[: i + 1, : j + 1]
            total = least[inner] + (fitting[i, j] - fitting[inner]) * cells[i, j]
            choice[i, j] = divmod(int(total.argmin()), j + 1)
            longer[i, j] = total.min()
        least = longer
        choices.append(choice)
    at, pairs = tuple(size - 1 for size in fitting.shape), []
    for choice in reversed(choices):
        if choice[at] != at:
            pairs.append([side[i] for side, i in zip(sides, at, strict=True)])
        at = choice[at]
    return np.array(pairs[::-1])


def _candidates(lengths, side):
    """Returns the candidate widths of one feature: 0, then all lengths that occur or, of many lengths, the best."""
    widths, other = np.unique(lengths[:, side]), lengths[:, 1 - side]
    if len(widths) > _MOST_CANDIDATES and other.any():
        widths = nested_widths(np.stack([lengths[:, side], np.zeros_like(other)], 1), _MOST_CANDIDATES)[:, 0]
    return np.concatenate([[0], widths])
