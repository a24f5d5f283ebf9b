"""t2t-insights-server: a page that shows how a model answers: attention, the tree of a beam search, single steps.

For users who want to see why a model writes what it writes. tensor2tensor's insights server showed the same; here the
page is part of the package. Uses t2t_lite.extras.pictures and t2t_lite.extras.serving.
Needs: pip install 't2t_lite[web]'.
"""
