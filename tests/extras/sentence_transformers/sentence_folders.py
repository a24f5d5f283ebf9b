"""Folders of sentence-transformers with random weights, in the forms that its versions write."""

import json

from tests.extras.hugging_face.encoder_folders import write_encoder

OLD, NEW = "version 2", "version 6"
_TYPES = {
    OLD: ["sentence_transformers.models.Transformer", "sentence_transformers.models.Pooling",
          "sentence_transformers.models.Normalize"],
    NEW: ["sentence_transformers.base.modules.transformer.Transformer",
          "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
          "sentence_transformers.base.modules.normalize.Normalize"],
}  # fmt: skip
_FLAGS = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "mean_sqrt_len": "mean_sqrt_len_tokens"}
LENGTH = 9


def write_sentence_encoder(
    folder, version=OLD, pooling="mean", is_unit=True, length=LENGTH, class_name="BertModel", **changed
):
    """Writes a folder; returns its path.

    Args:
        folder: Path, which does not exist yet.
        version: `OLD` or `NEW`.
        pooling: str, the kind in words of version 6.
        is_unit: bool, whether vectors are normalized.
        length: int, positions of the longest text; None: not stated.
        class_name: str, of the model.
        changed: {name of a file with "_" for ".", "/" and so on: function of its JSON value, which is written instead}.
    """
    path, _ = write_encoder(folder, class_name)
    paths = ["", "1_Pooling", "2_Normalize"][: 3 if is_unit else 2]
    modules = [
        {"idx": at, "name": str(at), "path": path, "type": kind}
        for at, (path, kind) in enumerate(zip(paths, _TYPES[version], strict=False))
    ]
    if version == OLD:
        pools = {f"pooling_mode_{flag}": kind == pooling for kind, flag in _FLAGS.items()}
        texts = {"max_seq_length": length, "do_lower_case": False}
        prompts = {"__version__": {"sentence_transformers": "2.0.0"}}
    else:
        pools = {"pooling_mode": pooling, "include_prompt": True}
        texts = {
            "transformer_task": "feature-extraction",
            "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
            "module_output_name": "token_embeddings",
        }
        prompts = {"prompts": {"query": "", "document": ""}, "default_prompt_name": None}
    written = {
        "modules": ("modules.json", modules),
        "pooling_file": ("1_Pooling/config.json", {"embedding_dimension": 16, **pools}),
        "texts": ("sentence_bert_config.json", texts),
        "prompts": ("config_sentence_transformers.json", prompts),
        "tokenizer": ("tokenizer_config.json", {"do_lower_case": True, "model_max_length": length}),
        "normalize": ("2_Normalize/config.json", {"module_input_name": "sentence_embedding"}),
    }
    for name, (file, value) in written.items():
        target = folder / file
        if name == "normalize" and (version == OLD or not is_unit):
            continue
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(changed[name](value) if name in changed else value))
    return path
