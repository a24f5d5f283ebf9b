"""t2t-query-server: asks a server for translations, over gRPC or REST, and t2t-server for streams.

For who sends files to TensorFlow Serving or t2t-server: interactive, from files or from Python, with retries, TLS and
sentences that are split and joined. gRPC needs: pip install 't2t_lite[serving]'.
"""
