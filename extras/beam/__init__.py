"""t2t-datagen --runner, which generates data with Apache Beam; the files are the same as those of a local run.

For corpora that are so large that they need a cluster.
Needs: pip install 't2t_lite[beam]'.
"""
