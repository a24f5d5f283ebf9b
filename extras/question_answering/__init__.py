"""Adds the task `spans`, which answers a question with a part of a text, as in SQuAD (arXiv 1606.05250).

For fine-tuning encoders: `qa_own` reads files in SQuAD's format, long texts are split into overlapping windows (Devlin
et al. 2018, 1810.04805), and answers are scored by exact match and F1.
"""
