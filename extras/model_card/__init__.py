"""A README.md in the folder of every export: the model's languages, size and scores, and code that calls it.

For publishing models: the header has the form of Hugging Face's Hub (model cards: Mitchell et al. 2019, arXiv
1810.03993).
"""
