"""t2t-exporter --format=ctranslate2: exports a Transformer to CTranslate2, optionally with 8-bit weights.

For serving translations on CPUs. If the model has options that the format does not support, they are reported before
anything is written. The exported model gives the same outputs. Uses t2t_lite.extras.hugging_face for vocabularies.
Needs: pip install 't2t_lite[ctranslate2]'.
"""
