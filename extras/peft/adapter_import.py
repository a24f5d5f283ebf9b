"""Makes a run from a PEFT adapter and the run of its base model."""

import os

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.extras.hugging_face.family import check
from t2t_lite.extras.hugging_face.hugging_face_folder import read_tensors
from t2t_lite.extras.peft.adapter_head import AdapterHead
from t2t_lite.extras.peft.adapter_matrices import AdapterMatrices
from t2t_lite.extras.peft.adapter_parts import CONFIG, FACTS, MOST, TENSORS, family_with_adapters, fingerprint
from t2t_lite.runs.opening import open_run
from t2t_lite.runs.run_config import merged_config
from t2t_lite.runs.saving import write_run
from t2t_lite.runs.weights import named_weights

_SCHEMA = {
    "peft_type": str, "r": int, "lora_alpha": float, "task_type?": str | None, "alpha_pattern?": dict | None,
    "use_rslora?": bool | None,
}  # fmt: skip
_FACTS_SCHEMA = {"format": int, "problem": str, "labels": [str], "base_sha256": str}
_OFF = (None, False, [], {})
# Settings that can make PEFT compute another function or store other weights, and their supported values.
_EXPECTED = {"bias": "none", "init_lora_weights": "true"}
_POSSIBLE = {
    "bias": ("none", None), "init_lora_weights": (True, False, None, "gaussian", "eva", "orthogonal"),
    **dict.fromkeys(("use_dora", "lora_bias", "layer_replication", "trainable_token_indices", "target_parameters",
                     "use_qalora", "use_bdlora", "alora_invocation_tokens", "arrow_config"), _OFF),
}  # fmt: skip


def import_adapter(path, base, output_dir, *, merge=False):
    """Makes a run from an adapter and its base model; the run computes the same logits as PEFT's model.

    Args:
        path: str, a folder with `adapter_config.json` and `adapter_model.safetensors`.
        base: str, the run of the base model, see `open_run`.
        output_dir: str, folder of the new run, which does not exist yet or is empty.
        merge: bool, whether LoRA is merged into the kernels. If it is kept separate, it can be trained further.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged, the adapter belongs to a different base, or one of its settings is
            not supported.
        Failure: writing failed; nothing is left behind.
    """
    facts_path, tensors_path = os.path.join(path, FACTS), os.path.join(path, TENSORS)
    config = _read_config(os.path.join(path, CONFIG))
    facts = files.read_json(facts_path, _FACTS_SCHEMA) if files.exists(facts_path) else None
    tensors = read_tensors(files.read_bytes(tensors_path), tensors_path)
    run = open_run(base)
    family = family_with_adapters(run.model, run.encoders, run.path)
    if facts and facts["base_sha256"] != fingerprint(run.model):
        raise UserError(
            f"{path}: belongs to a different base: it was not trained on the weights of {run.path}. Expected "
            "--base=RUN of the model that its training started from (--warm_start_from)."
        )
    matrices = AdapterMatrices(tensors_path, config, tensors, family, run)
    head = AdapterHead(tensors_path, config, facts, matrices.others, family, run)
    settings = merged_config(run.config)["hparams"] | head.settings
    if not merge:
        settings |= matrices.settings

    def fill(model):
        known = named_weights(run.model)
        for name, weight in named_weights(model).items():
            if name in known and known[name].shape == weight.shape:
                weight.assign(known[name])
        head.fill(model)
        matrices.fill(model)

    return write_run(output_dir, lambda folder: head.prepare(folder, settings), fill)


def _read_config(path):
    config = files.read_json(path, _SCHEMA)
    check(path, "peft_type", config["peft_type"], config["peft_type"] == "LORA", "LORA")
    for name, possible in _POSSIBLE.items():
        value = config.get(name)
        is_right = any(value == one and type(value) is type(one) for one in possible)
        check(path, name, value, is_right, f"{_EXPECTED.get(name, 'false')}: no other value is supported")
    check(path, "r", config["r"], 1 <= config["r"] <= MOST, f"a number from 1 to {MOST:,}")
    return config
