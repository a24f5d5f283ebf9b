"""Kinds of self-attention with options, as `Transformer(self_attention=…)` takes them."""

RELATIVE = {"type": "dot_product_relative", "max_relative_position": 4}
RELATIVE_VALUES = {**RELATIVE, "add_relative_to_values": True}
MUSIC = {**RELATIVE_VALUES, "type": "dot_product_relative_v2"}
RESTRICTED = {"type": "restricted", "neighborhood": 3}
