"""Adds a README.md to every export; it states the model's languages, size and scores, and shows how to call the model.

For publishing models: the file is a model card (Mitchell et al. 2019, arXiv 1810.03993), and begins with the header
that Hugging Face's Hub reads.
"""
