"""translate_ende_phrasebook: English-German sentence pairs from a grammar, which need no download.

For the quickstart and for experiments: a grammar makes 20,000 pairs in seconds, with word order, cases, genders and
agreement to be learned.
"""
