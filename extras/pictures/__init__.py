"""Draws the roles of attention heads, attention patterns, and bar charts that compare runs.

For papers and talks: t2t-attention --roles (as in Voita et al. 2019, arXiv 1905.09418) and --patterns; t2t-trainer
--summary, which compares runs with the paper's table 3.
"""
