"""Images as sequences of ids, one per channel of a pixel: problems, local attention and the Image Transformer's sets.

For generating and completing images (Parmar et al. 2018, arXiv 1802.05751; Child et al. 2019, 1904.10509): MNIST,
CIFAR-10, and the user's PNG files. The Sparse Transformer's sets for images name attention kinds of `extras/sparse`.
"""
