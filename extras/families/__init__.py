"""Imports and exports relatives of BERT, GPT-2 and Marian as Hugging Face folders, with their tokenizers.

For starting from published weights: XLM-RoBERTa (arXiv 1911.02116), ALBERT (1909.11942), ERNIE (1904.09223), DistilBERT
(1910.01108), ELECTRA (2003.10555), GPT and Blenderbot (2004.13637), with unigram vocabularies (1804.10959). Each family
is declared by tables of its names for weights and settings. Uses t2t_lite.extras.hugging_face.
"""
