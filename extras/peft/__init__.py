"""Exports LoRA adapters in PEFT's format, imports them onto a base model, and merges them into its kernels.

For training and exchanging several small adapters of one base model (Hu et al. 2022, arXiv 2106.09685).
`t2t-exporter --format=peft` writes `adapter_config.json` and `adapter_model.safetensors`, and `t2t-importer
--from=peft` reads them, for BERT and its relatives, GPT-2, GPT and Marian. This extra uses
`t2t_lite.extras.hugging_face`, and needs no other package.
"""
