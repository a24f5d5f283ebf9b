"""Sparse Transformer's patterns of attention, strided and fixed (Child et al. 2019, arXiv 1904.10509).

For rows of thousands of ids: `self_attention_type=strided` or `fixed` of any model that reads from left to right, and
the sets sparse_transformer_…. No pip extra.
"""
