"""Writes a run's LoRA matrices as an adapter that PEFT can add to the model from which the run started."""

import os

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.extras.hugging_face.encoders import encoder_folder
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from t2t_lite.extras.peft.adapter_parts import (
    CONFIG,
    FACTS,
    PREFIX,
    TENSORS,
    A,
    B,
    family_with_adapters,
    fingerprint,
    head_names,
    kernel_parts,
)
from t2t_lite.files import folders
from t2t_lite.runs.locating import export_of
from t2t_lite.runs.opening import restore_weights
from t2t_lite.runs.run_config import build_model, lora_facts


def export_adapter(answerer, path):
    """Writes `adapter_config.json` and `adapter_model.safetensors` for PEFT, and `t2t_lite.json` for `import_adapter`.

    The tensors include the head of an encoder (`modules_to_save`), because it is trained together with LoRA.
    `t2t_lite.json` stores the problem, the labels, and a fingerprint that identifies the base model.

    Args:
        answerer: Translator, Generator or Predictor of one run that was trained with `lora_rank`.
        path: str, a new or empty folder.

    Returns:
        `path`. The folder appears only when everything is written.

    Raises:
        UserError: the run has no LoRA, other weights were trained as well, or PEFT cannot add LoRA to its model.
        Failure: writing failed; nothing is left behind.
    """
    folders.check_new(path)
    if len(answerer.runs) != 1:
        raise UserError(
            f"--format=peft: found {len(answerer.runs)} runs. Expected one, because an adapter belongs to one run."
        )
    run = answerer.run
    _check(run)
    family = family_with_adapters(answerer.model, answerer.encoders, run.path)
    model = build_model(run.config)  # in the answerer's model, LoRA is already added to the kernels
    restore_weights(run.path, model)
    rank, factor = lora_facts(run.config)
    tensors, ranks, modules = {}, {}, []
    for part in kernel_parts(family, model):
        if count := sum(layer.lora_enabled for layer in part.layers):
            name = part.module.removeprefix(family.prefix)
            modules.append(name)
            if count > 1:
                ranks[name] = count * rank
            tensors[PREFIX + part.module + A], tensors[PREFIX + part.module + B] = part.foreign(rank)
    task, heads = head_names(family, model)
    if heads:
        every = encoder_folder(family, answerer).tensors
        tensors |= {PREFIX + n: array for n, array in every.items() if n.startswith(tuple(f"{h}." for h in heads))}
    config = {
        "peft_type": "LORA",
        "task_type": task,
        "base_model_name_or_path": None,
        "inference_mode": True,
        "r": rank,
        "lora_alpha": factor * rank,
        "rank_pattern": ranks,
        "alpha_pattern": {name: factor * own_rank for name, own_rank in ranks.items()},
        "target_modules": modules,
        "modules_to_save": heads or None,
        "fan_in_fan_out": not family.is_transposed,
        "lora_dropout": 0.0,
        "bias": "none",
        "use_rslora": False,
        "use_dora": False,
        "init_lora_weights": True,
    }
    facts = {
        "format": 1,
        "problem": run.config["problem"],
        "labels": getattr(answerer, "labels", []),
        "base_sha256": fingerprint(model),
    }

    def write(folder):
        write_tensors(os.path.join(folder, TENSORS), tensors)
        for name, content in ((CONFIG, config), (FACTS, facts)):
            files.write_json(os.path.join(folder, name), content)

    return folders.write_folder(path, write)


def _check(run):
    """Raises `UserError` if there is no LoRA, or if training changed weights that an adapter cannot contain."""
    if export_of(run.path):
        reason = "is an export, in which LoRA is merged into the kernels. Expected the training's output_dir."
    elif not run.hparams.lora_rank:
        reason = "was trained with lora_rank=0. Expected a run trained with LoRA: --hparams=lora_rank=8."
    elif run.hparams.frozen:
        reason = f"was trained with frozen={run.hparams.frozen}, not only LoRA. Expected a run without it."
    elif run.model.config.get("head") == "masked_lm":
        reason = "trained its head for masked words, which adapters cannot contain. Expected a run of any other task."
    else:
        return
    raise UserError(f"{run.path}: {reason}")
