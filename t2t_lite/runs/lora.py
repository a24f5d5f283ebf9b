"""LoRA in checkpoints: a run's own have the matrices beside the kernels, and a model that is used has their sum."""

from t2t_lite.runs.run_config import hparams_of

_MATRICES = ("/lora_kernel_a", "/lora_kernel_b")
_SETTINGS = {"frozen": "", "lora_rank": 0, "lora_alpha": 0.0}  # what a model that is not trained has of these


def lora_names(names):
    """Returns those of some weights' names that are of matrices of LoRA, a set."""
    return {name for name in names if name.endswith(_MATRICES)}


def lora_facts(config):
    """Returns (rank, factor of A B) of a `hparams.json`, a dict; rank 0: there is no LoRA."""
    hparams = hparams_of(config)
    rank = hparams.lora_rank
    return rank, (hparams.lora_alpha or rank) / rank if rank else 0.0


def merged_config(config):
    """Returns a `hparams.json`, a dict, of the same model with its LoRA in the kernels, and nothing frozen."""
    kept = {name: value for name, value in config["hparams"].items() if name in _SETTINGS}
    return {**config, "hparams": config["hparams"] | {name: _SETTINGS[name] for name in kept}}
