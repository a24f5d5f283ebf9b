"""Files of translators: gettext's `.po` and XLIFF 1.2, which t2t-decoder fills in, and which translate_own learns from.

Entries without a translation get one, marked as fuzzy, so that a translator reviews it. All others stay.
Needs: pip install 't2t_lite[catalogs]' (polib, translate-toolkit).
"""
