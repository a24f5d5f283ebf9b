"""t2t-insights-server: a page on which a run translates, with its attention, the beam's tree and steps one by one.

For who wants to see why a model writes what it writes; tensor2tensor's insights server showed the same, and this one
has the page in the package. Uses t2t_lite.extras.pictures and t2t_lite.extras.serving.
Needs: pip install 't2t_lite[web]'.
"""
