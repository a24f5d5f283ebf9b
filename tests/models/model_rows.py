"""What a row of the table of models is: a small model, a batch, and what belongs to a row of it."""

from types import MappingProxyType
from typing import NamedTuple

import keras
import numpy as np

from t2t_lite import registry
from tests.layers.equations import array

VOCAB = 20
INPUTS = [[5, 6, 7, 1, 8, 9, 1], [10, 12, 3, 1], [4]]
TARGETS = [[7, 19, 4, 11, 9, 1], [3, 14], [16, 4, 5, 8, 13, 6]]
OF_HEADS = {  # of the inputs above
    "masked_lm": [[5, 0, 7, 0, 0, 9, 0], [10, 0, 0, 0], [4]],
    "tag": [[1, 2, 3, 1, 3, 1, 2], [2, 1, 1, 3], [1]],
    "class": [1, 2, 3],
    "real": [1, 2**16, 2**15],
    "span": [[1, 3], [2, 4], [1, 1]],
}

# Options of small models.
TRANSFORMER = {"filter_size": 32, "num_heads": 4, "num_encoder_layers": 1, "num_decoder_layers": 1}
LM = {"filter_size": 32, "num_heads": 2, "num_layers": 2}


class Row(NamedTuple):
    """A model.

    Attributes:
        name: str, by which it is registered.
        options: dict, arguments of the constructor beside `vocab_size` and `hidden_size`.
        reads: str, what a batch has: "pairs", "texts" with prompts, or the labels of an encoder's head.
        rounding: float, the share of the largest logit by which another width, or neighbours, may change one; with
            TensorFlow it is 1e-6.
        reads_targets: bool, whether a target depends on those before it.
        beside: {feature: rows}, what a batch has beside inputs and targets.
        has_unread: bool, whether there are weights that are not read.
    """

    name: str
    options: dict
    reads: str = "pairs"
    rounding: float = 1e-6
    reads_targets: bool = True
    beside: MappingProxyType = MappingProxyType({})
    has_unread: bool = False

    @property
    def is_decoded(self):
        """Whether outputs are searched for."""
        return self.reads in ("pairs", "texts")

    @property
    def smoothing(self):
        """A label smoothing that its loss can have: places in a text are not smoothed."""
        return 0.0 if self.reads == "span" else 0.1

    def unbuilt(self, kind=None, **options):
        """Returns a model that has no weights yet, of the row's class if no other is given."""
        options = {"vocab_size": VOCAB, "hidden_size": 16, **self.options, **options}
        return (kind or registry.model(self.name))(**options)

    def make(self, **options):
        """Returns a model whose weights are drawn from a wide distribution, biases, gains and gates included."""
        keras.utils.set_random_seed(3)
        model = self.unbuilt(**options)
        model.build()
        draw = np.random.default_rng(2)
        for weight in model.trainable_weights:
            weight.assign(array(weight) + draw.normal(0, 0.2, weight.shape))
        return model

    def batch(self, seed=0):
        """Returns three rows of unequal lengths; another seed gives other targets of the same lengths."""
        targets, draw = OF_HEADS.get(self.reads, TARGETS), np.random.default_rng(seed)
        if seed:
            targets = [[*draw.integers(3, VOCAB, len(row))] for row in targets]
        batch = {"inputs": padded(INPUTS), "targets": padded(targets)}
        return batch | {feature: padded(rows) for feature, rows in self.beside.items()}

    def widened(self, batch):
        """Returns a batch with more padding."""
        more = dict.fromkeys(batch, 13) | ({} if self.reads in ("masked_lm", "tag") else {"targets": 9})
        own = {f: ids for f, ids in batch.items() if ids.ndim == 2 and not (f == "targets" and self.reads == "span")}
        return batch | {f: np.pad(ids, ((0, 0), (0, more[f]))) for f, ids in own.items()}

    def alone(self, batch, row):
        """Returns a row of a batch as a batch without padding."""
        length = np.count_nonzero(batch["inputs"][row])
        lengths = dict.fromkeys(batch, length)
        if self.is_decoded:
            lengths["targets"] = np.count_nonzero(batch["targets"][row])
        elif self.reads == "span":
            lengths["targets"] = 2
        return {
            f: ids[row : row + 1, : lengths[f]] if ids.ndim == 2 else ids[row : row + 1] for f, ids in batch.items()
        }

    def results(self, model, batch):
        """Returns a list for each row of a batch: its logits, without those of padding."""
        outputs = model(batch, training=False)
        outputs = {"targets": outputs} if not isinstance(outputs, dict) else outputs
        logits, found = array(outputs["targets"]), []
        ends = np.cumsum(np.count_nonzero(batch["targets"], axis=-1)) if self.reads == "masked_lm" else None
        for row, inputs in enumerate(batch["inputs"]):
            length = np.count_nonzero(inputs)
            if self.is_decoded:
                own = logits[row, : np.count_nonzero(batch["targets"][row])]
            elif self.reads == "masked_lm":
                own = logits[ends[row] - np.count_nonzero(batch["targets"][row]) : ends[row]]
            elif self.reads == "span":
                own = logits[row, :, : length + 1]
            else:
                own = logits[row, :length] if self.reads == "tag" else logits[row]
            found.append([own, *([array(outputs["sentence"])[row]] if "sentence" in outputs else [])])
        return found


def padded(rows):
    """Rows of ids as int32 [B, length], or numbers as int32 [B]."""
    if not isinstance(rows[0], list):
        return np.array(rows, "int32")
    width = max(map(len, rows))
    return np.array([[*row, *[0] * (width - len(row))] for row in rows], "int32")


def logits_of(model, batch):
    """Logits of the targets."""
    outputs = model(batch, training=False)
    return array(outputs["targets"] if isinstance(outputs, dict) else outputs)


def rows_of(model, common, variants, **more):
    """Returns {name: Row}: a variant without a name has the model's."""
    return {
        f"{model}_{name}" if name else model: Row(model, {**common, **options}, **more)
        for name, options in variants.items()
    }
