"""The Universal Transformer, whose layer is repeated, and adaptive computation time, which determines how often.

For experiments with depth (Dehghani et al. 2018, arXiv 1807.03819; Graves 2016, 1603.08983): models, sets, and the
number of steps for each word, in files and as pictures.
"""
