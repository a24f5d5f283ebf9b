"""Reads and writes the sentence encoders of sentence-transformers, with their pooling and normalization.

For sentence vectors, such as those of all-MiniLM-L6-v2, and for fine-tuning (Reimers and Gurevych 2019, arXiv
1908.10084). `t2t-importer --from=hugging_face` reads a folder of sentence-transformers, and `t2t-exporter
--format=hugging_face` writes one. This extra uses `t2t_lite.extras.hugging_face`, and needs no other package.
"""
