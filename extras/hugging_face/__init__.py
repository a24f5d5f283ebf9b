"""Imports and exports models of Hugging Face Transformers: Marian, GPT-2, BERT and RoBERTa.

For starting from published weights with t2t-importer, or for publishing weights with t2t-exporter. The families are
Marian (arXiv 1804.00344), GPT-2 (Radford et al. 2019), BERT (1810.04805) and RoBERTa (1907.11692). Each is declared by
tables of its names for weights and settings. Reading `pytorch_model.bin` needs the pip extra [hugging_face]; everything
else works without it.
"""
