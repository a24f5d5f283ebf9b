"""Published sentence encoders: folders of sentence-transformers, with their pooling and normalization.

For sentence vectors, such as those of all-MiniLM-L6-v2, and for fine-tuning from them: Reimers and Gurevych 2019 (arXiv
1908.10084). `t2t-importer --from=hugging_face` reads such a folder, and `t2t-exporter --format=hugging_face` writes it
again. It uses the extra `t2t_lite.extras.hugging_face`, and needs no other package.
"""
