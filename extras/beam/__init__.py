"""t2t-datagen --runner: the generation of data as an Apache Beam pipeline, with the same files as on one machine.

For corpora that need a cluster. tensor2tensor's generators ran in such pipelines at Google.
Needs: pip install 't2t_lite[beam]'.
"""
