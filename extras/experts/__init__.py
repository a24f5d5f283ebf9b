"""Mixtures of experts instead of feed-forward layers: `ffn_layer=local_moe`, and the model transformer_moe.

For more parameters at the same cost: each position is processed by only a few of many experts (Shazeer et al. 2017,
arXiv 1701.06538, as in tensor2tensor's layers/expert_utils.py), with a loss that balances the experts' load.
"""
