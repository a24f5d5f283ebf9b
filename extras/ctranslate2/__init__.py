"""t2t-exporter --format=ctranslate2: a Transformer as a folder of CTranslate2, with weights of 8 bits if asked for.

For who serves translations on CPUs. What the format holds is checked before anything is written, and the exported model
gives the same outputs. Uses t2t_lite.extras.hugging_face, for vocabularies.
Needs: pip install 't2t_lite[ctranslate2]'.
"""
