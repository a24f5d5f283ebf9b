"""Every registered model in one table, small, with a batch and what belongs to a row of it: a new family is one row.

Those of extras stand in `tests/extras/<name>/every_model.py`.
"""

import importlib
import pathlib

from t2t_lite import registry
from tests.layers.kinds import MUSIC, RELATIVE, RELATIVE_VALUES, RESTRICTED
from tests.models.model_rows import LM, TRANSFORMER, VOCAB, Row, logits_of, rows_of

__all__ = ["CORE", "DECODED", "ELSEWHERE", "ROWS", "VOCAB", "Row", "logits_of", "own_models"]


def of_extras(name):
    """Returns the modules of a name beside the tests of extras."""
    paths = sorted(pathlib.Path(__file__).parents[1].glob(f"extras/*/{name}.py"))
    return [importlib.import_module(f"tests.extras.{path.parent.name}.{name}") for path in paths]


def own_models():
    """Names of the models of the package and of its extras: tests register others."""
    return {name for name in registry.list_models() if registry.model(name).__module__.startswith("t2t_lite.")}


ROWS = {
    **rows_of("transformer", TRANSFORMER, {
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
    **rows_of("transformer_lm", LM, {
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
    **{
        f"transformer_encoder_{head}" if head != "masked_lm" else "transformer_encoder": Row(
            "transformer_encoder", {**LM, "max_position": 32, "head": head, **options}, head,
            beside={"sentence": [1, 2, 1]} if "sentence_classes" in options else {},
        )
        for head, options in {
            "masked_lm": {"sentence_classes": 2, "first_id": 4, "num_hidden_groups": 1, "embedding_size": 6},
            "class": {"target_vocab_size": 4, "num_task_types": 3, "match_embedding": True},
            "tag": {"target_vocab_size": 4, "num_segments": 0, "norm": "pre", "embedding_norm": False},
            "real": {"pooling": "mean_max"},
            "span": {"embedding_size": 6},
        }.items()
    },
}  # fmt: skip
ELSEWHERE = set()  # those that are tried in other tests
for _module in of_extras("every_model"):
    ROWS |= _module.ROWS
    ELSEWHERE |= getattr(_module, "ELSEWHERE", set())
# One row of each model: of properties that hardly depend on the options make test tries these, make test-all every one.
CORE = [name for name, row in ROWS.items() if name == row.name]
DECODED = [name for name, row in ROWS.items() if row.is_decoded]
