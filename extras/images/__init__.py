"""Problems, local attention and hyperparameter sets for images.

For models that generate and complete images (Parmar et al. 2018, arXiv 1802.05751; Child et al. 2019, 1904.10509),
trained on MNIST, CIFAR-10 or the user's PNG files. An image is a sequence of ids, one for each channel of each pixel.
The Sparse Transformer's sets for images use attention patterns of `extras/sparse`.
"""
