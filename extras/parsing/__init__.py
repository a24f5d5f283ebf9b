"""Constituency parsing as translation (the paper's section 6.3): problems, trees, and the scorer t2t-evalb.

For users who reproduce table 4 of "Attention Is All You Need" (arXiv 1706.03762; Vinyals et al. 2015, 1412.7449):
sentences become bracketed trees, outputs are repaired into trees, and bracketing F1 is computed as in EVALB.
Needs: pip install 't2t_lite[parsing]'.
"""
