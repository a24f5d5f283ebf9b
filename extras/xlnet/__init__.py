"""XLNet: an encoder that learns to predict words in random orders (Yang et al. 2019, arXiv 1906.08237).

For labels, tags, numbers and answers in texts, from a published model or one of your own: `--model=xlnet`, the problem
permutation_lm_own, the sets xlnet_tiny to xlnet_large, and the family xlnet of t2t-importer. Its attention counts
distances by the score of the extra memory, which it needs; what it costs, the extra describe counts. No pip extra.
"""
