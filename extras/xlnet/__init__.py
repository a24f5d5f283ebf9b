"""XLNet: an encoder that is trained to predict words in random orders (Yang et al. 2019, arXiv 1906.08237).

For training, fine-tuning or importing an XLNet: the model with two streams, its attention with relative segments, the
problem permutation_lm_own, and Hugging Face's format.
Uses t2t_lite.extras.describe, t2t_lite.extras.hugging_face and t2t_lite.extras.memory; `extras/families` reads the
vocabularies of published models.
"""
