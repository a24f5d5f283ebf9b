"""Problems, local attention and hyperparameter sets for images, as sequences of one id per channel of each pixel.

For generating and completing images (Parmar et al. 2018, arXiv 1802.05751; Child et al. 2019, 1904.10509), from MNIST,
CIFAR-10 or the user's PNG files. The Sparse Transformer's sets for images use attention patterns of `extras/sparse`.
"""
