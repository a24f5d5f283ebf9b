"""t2t-insights-server: a web page that shows a model's attention, beam search tree and token probabilities.

For users who want to see why a model gives its outputs. tensor2tensor's insights server showed the same; here the page
is part of the package. Uses t2t_lite.extras.pictures and t2t_lite.extras.serving.
Needs: pip install 't2t_lite[web]'.
"""
