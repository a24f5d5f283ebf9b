"""Protected texts: addresses, tags and placeholders that a translation keeps unchanged.

For translating web pages and manuals. `translate_own --protect=…` replaces these texts with symbols in the training
data, in decoding and in exported graphs, and puts the original texts back into the translation.
"""
