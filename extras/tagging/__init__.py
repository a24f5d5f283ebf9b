"""Tags of words: the task tagging, such as named entities (Tjong Kim Sang and De Meulder 2003).

For who fine-tunes an encoder: `tag_own` reads CoNLL's files, a word has the tag of its first piece (Devlin et al. 2018,
arXiv 1810.04805), and entities are scored by F1 as conlleval and seqeval do.
"""
