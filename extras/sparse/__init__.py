"""Sparse patterns of attention, strided and fixed, of the Sparse Transformer (Child et al. 2019, arXiv 1904.10509).

For long sequences: each position sees about twice the square root of the length. They register themselves as kinds of
`self_attention_type`; the sets are those of the paper's bytes, and a tiny one.
"""
