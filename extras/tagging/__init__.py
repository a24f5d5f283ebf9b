"""Adds the task `tagging`, which labels words, e.g. for named entities (Tjong Kim Sang and De Meulder 2003).

For fine-tuning encoders: `tag_own` reads CoNLL files, a word's tag is predicted at its first piece (Devlin et al. 2018,
arXiv 1810.04805), and the F1 of entities is computed as in conlleval and seqeval.
"""
