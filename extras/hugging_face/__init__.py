"""Models from and to Hugging Face Transformers: Marian, GPT-2, BERT and RoBERTa (t2t-importer, t2t-exporter).

For who starts from published weights, or gives weights to others: Marian (arXiv 1804.00344), GPT-2 (Radford et al.
2019), BERT (1810.04805), RoBERTa (1907.11692). Each family is a table of its names for weights and settings.
Reading `pytorch_model.bin` needs the pip extra [hugging_face]; all else needs nothing more.
"""
