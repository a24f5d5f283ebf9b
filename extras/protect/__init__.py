"""Protected texts: addresses, numbers and tags that pass through a translation unchanged, as symbols.

For who translates web pages and manuals: `translate_own --protect=…` replaces them in the data, when decoding and in
the exported graph, and puts them back.
"""
