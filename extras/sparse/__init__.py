"""The sparse attention patterns of the Sparse Transformer, strided and fixed (Child et al. 2019, arXiv 1904.10509).

For long sequences: each position sees about twice the square root of the length. Both patterns are values of
`self_attention_type`. The sets are the paper's model of bytes and a tiny one.
"""
