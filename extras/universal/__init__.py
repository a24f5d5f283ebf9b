"""The Universal Transformer, which repeats its layers, and adaptive computation time, which decides how often.

For experiments with depth (Dehghani et al. 2018, arXiv 1807.03819; Graves 2016, 1603.08983): models, hparams sets, and
the number of steps per word, written to files and drawn as pictures.
"""
