"""Every registered model in one table, small, with a batch and what belongs to a row of it: a new family is one row."""

from typing import NamedTuple

import keras
import numpy as np

from t2t_lite import registry
from tests.layers.equations import array
from tests.layers.kinds import MUSIC, RELATIVE, RELATIVE_VALUES, RESTRICTED

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


class Row(NamedTuple):
    """A model.

    Attributes:
        name: str, by which it is registered.
        options: dict, arguments of the constructor beside `vocab_size` and `hidden_size`.
        reads: str, what a batch has: "pairs", "texts" with prompts, or the labels of an encoder's head.
        rounding: float, the share of the largest logit by which another width, or neighbours, may change one. With
            TensorFlow alone it can be 0, and is 1e-6 at most.
        reads_targets: bool, whether a target depends on those before it.
    """

    name: str
    options: dict
    reads: str = "pairs"
    rounding: float = 1e-6
    reads_targets: bool = True

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
        if self.name == "xlnet" and self.reads == "masked_lm":
            batch["order"] = padded([[2, 0, 1, 0, 0, 3, 0], [1, 0, 0, 0], [1]])
        if "sentence_classes" in self.options:
            batch["sentence"] = np.array([1, 2, 1], "int32")
        return batch

    def widened(self, batch, width=None):
        """Returns a batch with more padding: so much that all are `width` wide, or some more."""
        more = {"inputs": 13, "targets": 13 if self.reads in ("masked_lm", "tag") else 9, "order": 13}
        own = {f: ids for f, ids in batch.items() if ids.ndim == 2 and not (f == "targets" and self.reads == "span")}
        if width:
            more = {f: width - ids.shape[1] for f, ids in own.items()}
        return batch | {f: np.pad(ids, ((0, 0), (0, more[f]))) for f, ids in own.items()}

    def alone(self, batch, row):
        """Returns a row of a batch as a batch without padding."""
        length = np.count_nonzero(batch["inputs"][row])
        lengths = {"inputs": length, "order": length, "targets": length}
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


def own_models():
    """Names of the models of the package and of its baselines: tests register others."""
    own = ("t2t_lite.", "baselines.")
    return {name for name in registry.list_models() if registry.model(name).__module__.startswith(own)}


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


_TRANSFORMER = {"filter_size": 32, "num_heads": 4, "num_encoder_layers": 1, "num_decoder_layers": 1}
_LM = {"filter_size": 32, "num_heads": 2, "num_layers": 2}
_EXPERTS = {"type": "local_moe", "num_experts": 4, "k": 2, "loss_coef": 0.1}
_ACT = {"recurrence_type": "act"}
ROWS = {
    **rows_of("transformer", _TRANSFORMER, {
        "": {"num_encoder_layers": 2, "num_decoder_layers": 2},
        "pre_norm": {"norm": "pre", "position_layout": "tensor2tensor"},
        "learned": {"position": "learned", "max_position": 24},
        "no_positions": {"position": "none"},
        "untied_two_vocabularies": {"tie_embeddings": False, "target_vocab_size": 30},
        "tied_two_vocabularies": {"target_vocab_size": 30},
        "own_head_sizes": {"key_dim": 3, "value_dim": 5, "attention_bias": True},
        "swiglu": {"activation": "swiglu", "position_layout": "marian"},
        "marian": {"activation": "swish", "softmax_bias": True, "attention_bias": True},
        "untied_with_bias": {"softmax_bias": True, "tie_embeddings": False, "target_vocab_size": 30},
        "depths": {"num_decoder_layers": 2},
        "relative": {"self_attention": RELATIVE, "position": "none"},
        "relative_values": {"self_attention": RELATIVE_VALUES},
        "music": {"self_attention": MUSIC, "position": "none"},
        "rotary": {"position": "rotary"},
        "target_space": {"target_space_embedding": True},
        "restricted": {"self_attention": RESTRICTED},
        "small_embeddings": {"embedding_size": 4, "scale_embeddings": False},
    }),
    **rows_of(
        "universal_transformer",
        {"filter_size": 24, "num_heads": 2, "norm": "pre", "num_rec_steps": 3, "act_max_steps": 3},
        {
            "": _ACT,
            "basic": {},
            "accumulated": {**_ACT, "act_type": "accumulated", "num_inrecurrence_layers": 2},
            "global": {**_ACT, "act_type": "global", "norm": "post"},
            "step": {**_ACT, "position_start_index": "step", "step_timing_signal_type": "sinusoid"},
        },
        rounding=3e-6,
    ),
    **rows_of("transformer_moe", {**_TRANSFORMER, "num_heads": 2, "num_encoder_layers": 2, "num_decoder_layers": 2}, {
        "": {"feed_forward": ["dense_relu_dense", _EXPERTS]},
    }),
    **rows_of("transformer_lm", _LM, {
        "": {
            "norm": "pre", "begin": "end", "position": "learned", "max_position": 48, "attention_bias": True,
            "scale_embeddings": False, "activation": "gelu_tanh", "unused_ids": [0, 2],
        },
        "own": {"norm": "pre"},
        "conditional": {"unconditional": False, "self_attention": RESTRICTED, "begin": "end", "num_layers": 1},
        "untied": {"tie_embeddings": False, "softmax_bias": True, "embedding_size": 6, "begin": "end"},
        "relative": {"self_attention": RELATIVE_VALUES, "position": "none", "begin": "end"},
        "music": {"self_attention": MUSIC, "position": "none", "begin": "end"},
        "rotary": {"position": "rotary", "begin": "end", "self_attention": ["dot_product", RESTRICTED]},
    }, reads="texts"),
    **rows_of("transformer_memory", {**_LM, "memory_length": 8}, {
        "": {},
        "clamped": {"norm": "pre", "self_attention": {"type": "dot_product_relative_memory", "clamp_length": 5}},
        "rotary": {"self_attention": "dot_product", "position": "rotary"},
    }, reads="texts"),
    **{
        f"transformer_encoder_{head}" if head != "masked_lm" else "transformer_encoder": Row(
            "transformer_encoder", {**_LM, "max_position": 32, "head": head, **options}, head
        )
        for head, options in {
            "masked_lm": {"sentence_classes": 2, "first_id": 4, "num_hidden_groups": 1, "embedding_size": 6},
            "class": {"target_vocab_size": 4, "num_task_types": 3, "match_embedding": True},
            "tag": {"target_vocab_size": 4, "num_segments": 0, "norm": "pre", "embedding_norm": False},
            "real": {"pooling": "mean_max"},
            "span": {"embedding_size": 6},
        }.items()
    },
    **{
        f"xlnet_{head}" if head != "masked_lm" else "xlnet": Row(
            "xlnet", {**_LM, "last_id": 4, "head": head, **options}, head
        )
        for head, options in {
            "masked_lm": {}, "class": {"target_vocab_size": 4}, "tag": {"target_vocab_size": 4}, "real": {}, "span": {}
        }.items()
    },
    **rows_of("lstm_lm", {"num_layers": 2}, {"": {}, "untied": {"tie_embeddings": False}}, reads="texts"),
    **{
        f"lstm_lm_{head}": Row("lstm_lm", {"num_layers": 2, "head": head, **options}, head)
        for head, options in {"class": {"target_vocab_size": 4}, "tag": {"target_vocab_size": 4}, "real": {}}.items()
    },
    **rows_of("lstm_seq2seq_attention", {}, {"": {"num_layers": 3}, "luong": {"mechanism": "luong"}}, rounding=0),
    "conv_seq2seq": Row(
        "conv_seq2seq", {"num_encoder_layers": 2, "num_decoder_layers": 2, "max_position": 64}, rounding=0
    ),
    "bytenet": Row("bytenet", {"num_layers": 2, "num_blocks": 1}),  # its reciprocal root depends on the packet
    "extended_neural_gpu": Row("extended_neural_gpu", {"num_layers": 1}, rounding=0),
    "neural_gpu": Row("neural_gpu", {"num_layers": 2}, rounding=0, reads_targets=False),
}  # fmt: skip
ELSEWHERE = {"kermit"}  # reads canvases and fills them by a search of its own: tests/baselines/test_kermit*.py
# One row of each model: of properties that hardly depend on the options make test tries these, make test-all every one.
CORE = [name for name, row in ROWS.items() if name == row.name]
DECODED = [name for name, row in ROWS.items() if row.is_decoded]
