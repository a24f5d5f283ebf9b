"""Adds a README.md to every export, with the model's languages, size and scores, and code that calls the model.

For publishing models: the file is a model card (Mitchell et al. 2019, arXiv 1810.03993) with the header of Hugging
Face's Hub.
"""
