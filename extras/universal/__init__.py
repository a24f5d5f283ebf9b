"""The Universal Transformer, whose layer is repeated, and adaptive computation time, which says how often.

For who asks what depth does (Dehghani et al. 2018, arXiv 1807.03819; Graves 2016, 1603.08983): models, sets, the steps
that each word took, in files and as pictures.
"""
