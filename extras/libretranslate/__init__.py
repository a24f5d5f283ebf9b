"""LibreTranslate's API on t2t-server: Weblate, OmegaT and plug-ins of browsers translate by a model of your own.

They need an address alone. Texts and web pages are translated; tags come through. The languages are those that a flag
names. Uses t2t_lite.extras.serving, whose server answers.
Needs: pip install 't2t_lite[web]'.
"""
