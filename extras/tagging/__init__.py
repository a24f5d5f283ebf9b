"""Tags of words: the task tagging, such as named entities (Tjong Kim Sang and De Meulder 2003).

For fine-tuning encoders: `tag_own` reads CoNLL files, the first piece of a word gets its tag (Devlin et al. 2018, arXiv
1810.04805), and entities are scored by F1 as in conlleval and seqeval.
"""
