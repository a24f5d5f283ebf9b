"""Questions on texts: the task spans, whose answer is a part of a text, as in SQuAD (arXiv 1606.05250).

For who fine-tunes an encoder: `qa_own` reads files as SQuAD's, long texts are read in windows (Devlin et al. 2018,
1810.04805), and answers are scored by exact match and F1.
"""
