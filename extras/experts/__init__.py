"""Mixtures of experts: several feed-forward networks, few of which compute each position (Shazeer et al. 2017).

For more weights at the same cost of a step: `ffn_layer=local_moe` of any Transformer, its hyperparameters, and
`--model=transformer_moe` with its sets, as in tensor2tensor. arXiv 1701.06538. No pip extra.
"""
