"""t2t-datagen --runner: data generation as an Apache Beam pipeline, which writes the same files as on one machine.

For corpora that need a cluster.
Needs: pip install 't2t_lite[beam]'.
"""
