"""Protected texts: addresses, tags and placeholders that pass through a translation unchanged, as symbols.

For translating web pages and manuals: `translate_own --protect=…` replaces them by symbols in the data, in decoding and
in exported graphs, and puts them back.
"""
