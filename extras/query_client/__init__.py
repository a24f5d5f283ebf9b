"""t2t-query-server: a client that sends texts to a translation server over gRPC or REST, and can stream answers.

Uses TensorFlow Serving or t2t-server to translate files, typed lines, or texts from Python. Failed requests are
retried, and connections can use TLS. Texts of several sentences are split, and the answers are joined.
gRPC needs: pip install 't2t_lite[serving]'.
"""
