"""Transformer-XL, and whatever carries a state from one segment of a text to the next (Dai et al. 2019).

For language models of long texts: `--model=transformer_memory`, its sets, the score dot_product_relative_memory, and
batches of segments, which also a user's model with an `initial_state` needs. arXiv 1901.02860. No pip extra.
"""
