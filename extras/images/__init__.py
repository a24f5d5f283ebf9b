"""Images as rows of ids, one for each colour of a pixel: problems, local attention and the Image Transformer's sets.

For who generates, completes or enlarges images (Parmar et al. 2018, arXiv 1802.05751; Child et al. 2019, 1904.10509):
MNIST, CIFAR-10, and PNG files of one's own. Sparse Transformer's sets of images name kinds of `extras/sparse`.
"""
