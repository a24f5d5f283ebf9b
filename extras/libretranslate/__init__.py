"""LibreTranslate's API for t2t-server: lets Weblate, OmegaT and browser extensions translate with your own model.

These programs only need the server's address. The server translates texts and web pages, and keeps HTML tags. The flag
--libretranslate names the two languages. Uses t2t_lite.extras.serving.
Needs: pip install 't2t_lite[web]'.
"""
