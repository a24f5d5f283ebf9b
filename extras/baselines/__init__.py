"""Models that papers compare the Transformer with.

All commands support these models, and each has its hyperparameter sets. For readers of the older papers: LSTMs with
attention (arXiv 1409.0473, 1508.04025) and bidirectional LSTMs (1802.05365), ConvS2S (1705.03122), ByteNet
(1610.10099), the Neural GPU (1511.08228, 1610.08613) and KERMIT (1906.01604). Uses t2t_lite.extras.describe to count
the operations of their cells.
"""
