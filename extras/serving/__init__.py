"""t2t-server: serves an export with TensorFlow Serving's REST API, and streams completions like OpenAI's API.

For machines without Docker. Concurrent requests are computed in batches, a new version is loaded while the old version
still answers, metrics have the Prometheus format, and a web page lets you try the model.
Needs: pip install 't2t_lite[web]'.
"""
