"""t2t-server: an export behind TensorFlow Serving's REST paths, and streams as OpenAI's completions have them.

For machines without Docker: requests are batched together, new versions are loaded while old ones answer, metrics are
Prometheus', and a page tries the model in the browser.
Needs: pip install 't2t_lite[web]'.
"""
