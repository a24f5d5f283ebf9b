"""Pictures beside attention and curves: what heads do in a text, which positions see which, runs as bars.

For papers and talks: t2t-attention --roles and --patterns (as Voita et al. 2019, arXiv 1905.09418, sort heads), and
t2t-trainer --summary, with the paper's table 3 beside the runs.
"""
