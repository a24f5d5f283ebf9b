"""translate_ende_phrasebook: a little corpus of English and German that is invented, not downloaded.

For the quickstart and for trying things out: a grammar makes 20,000 pairs in seconds, with what translation is about:
word order, cases, genders and agreement.
"""
