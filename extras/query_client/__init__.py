"""t2t-query-server: a client that sends texts to a translation server over gRPC or REST, and can stream.

Translates files, typed lines or texts from Python with TensorFlow Serving or t2t-server. Requests have retries and TLS,
and texts of several sentences are split and their answers joined. gRPC needs: pip install 't2t_lite[serving]'.
"""
