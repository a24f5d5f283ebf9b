"""More pictures: the roles of attention heads over a text, which positions see which, and runs as bars.

For papers and talks: t2t-attention --roles (as in Voita et al. 2019, arXiv 1905.09418) and --patterns, and t2t-trainer
--summary, which compares runs with the paper's table 3.
"""
