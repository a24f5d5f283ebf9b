"""LoRA adapters as files of PEFT: saved alone, loaded onto a base model, and merged.

For who trains several small adapters of one base, or exchanges them: Hu et al. 2022 (arXiv 2106.09685).
`t2t-exporter --format=peft` writes `adapter_config.json` and `adapter_model.safetensors`, and `t2t-importer
--from=peft` reads them, for BERT and its relatives, GPT-2, GPT and Marian. It uses the extra
`t2t_lite.extras.hugging_face` and needs no other package.
"""
