"""t2t-query-server: asks a server for translations, over gRPC or REST, and t2t-server for streams.

Translates files, typed lines, or texts from Python by TensorFlow Serving or t2t-server, with retries and TLS; texts of
several sentences are split, and the answers joined. gRPC needs: pip install 't2t_lite[serving]'.
"""
