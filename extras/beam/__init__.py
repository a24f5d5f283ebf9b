"""t2t-datagen --runner generates data with Apache Beam.

For corpora that are so large that they need a cluster. The files are the same as those of a local run.
Needs: pip install 't2t_lite[beam]'.
"""
