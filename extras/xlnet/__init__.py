"""XLNet: an encoder trained to predict words in random order (Yang et al. 2019, arXiv 1906.08237).

For training, fine-tuning or importing an XLNet. Contains the two-stream model, its attention with relative segments,
the problem permutation_lm_own, and support for Hugging Face's format.
Uses t2t_lite.extras.describe, t2t_lite.extras.hugging_face and t2t_lite.extras.memory; `extras/families` reads the
vocabularies of published models.
"""
