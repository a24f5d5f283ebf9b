"""A README.md in the folder of every export: the model's languages, size, scores and the code that uses it.

For who publishes a model: its header is in the form of Hugging Face's Hub (Mitchell et al. 2019, arXiv 1810.03993).
"""
