"""t2t-server: serves an export at TensorFlow Serving's REST paths, and streams completions as OpenAI's API does.

For machines without Docker: concurrent requests are computed in batches, a new version is loaded while the old one
answers, metrics have the format of Prometheus, and a page lets you try the model in a browser.
Needs: pip install 't2t_lite[web]'.
"""
