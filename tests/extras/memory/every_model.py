"""Rows of the table of models: Transformer-XL."""

from tests.models.model_rows import LM, rows_of

ROWS = {
    **rows_of("transformer_memory", {**LM, "memory_length": 8}, {
        "": {},
        "clamped": {"norm": "pre", "self_attention": {"type": "dot_product_relative_memory", "clamp_length": 5}},
        "rotary": {"self_attention": "dot_product", "position": "rotary"},
    }, reads="texts"),
}  # fmt: skip
