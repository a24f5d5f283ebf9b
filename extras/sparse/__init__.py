"""The attention patterns of the Sparse Transformer, strided and fixed (Child et al. 2019, arXiv 1904.10509).

For long sequences: each position sees only about 2√n of the n positions. Both patterns are values of
`self_attention_type`. There are two hparams sets: the paper's byte-level model and a tiny one.
"""
