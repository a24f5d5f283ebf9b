"""Translators' catalogs (gettext's `.po`, XLIFF 1.2): t2t-decoder fills them in, and translate_own learns from them.

Entries without a translation get one, which is marked as fuzzy, so that a translator reviews it. All other
entries are kept.
Needs: pip install 't2t_lite[catalogs]' (polib, translate-toolkit).
"""
