"""Runs with LoRA, whose matrices and heads are random, of bases of each kind."""

import numpy as np

from t2t_lite.extras.hugging_face.hugging_face import import_hugging_face
from t2t_lite.files import copy_files
from t2t_lite.runs.opening import open_run
from t2t_lite.runs.saving import write_run
from t2t_lite.runs.weights import named_weights
from tests.decoding.runs import make_run
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.hugging_face.gpt_folders import write_gpt
from tests.layers.equations import array

# Marian's layout, and the paper's, whose features are permuted there.
_MARIAN = {
    "layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan", "norm_epsilon": 1e-5,
    "attention_bias": True,
}  # fmt: skip
IDS = np.array([[7, 8, 9, 10, 1, 0], [12, 13, 14, 1, 0, 0]])


def base_run(kind, folder):
    """Writes the run of a base, "bert", "gpt2", "marian" or "paper"; returns its path."""
    if kind in ("marian", "paper"):
        layout = {"marian": "marian", "paper": "interleaved"}[kind]
        return str(make_run(folder, **_MARIAN, position_layout=layout))
    theirs = folder / "theirs"
    path, _ = write_gpt(theirs) if kind == "gpt2" else write_encoder(theirs, "BertForSequenceClassification")
    import_hugging_face(path, str(folder / "run"))
    return str(folder / "run")


def tuned_run(base, output_dir, seed=0, **hparams):
    """Writes a run as a training with LoRA would from a base; returns its path."""
    run, rng = open_run(base), np.random.default_rng(seed)

    def prepare(folder):
        copy_files(run.encoder_files, folder)
        settings = {"lora_rank": 3, "lora_alpha": 6.0} | hparams
        return {**run.config, "hparams": run.config["hparams"] | settings}

    def fill(model):
        known = named_weights(run.model)
        for name, weight in named_weights(model).items():
            if name in known:
                weight.assign(known[name])
        for weight in model.trainable_weights:
            weight.assign(array(weight) + rng.normal(size=weight.shape, scale=0.2))

    write_run(output_dir, prepare, fill)
    return output_dir


def logits(path):
    """Logits of `IDS` by a run."""
    model = open_run(path).model
    return array(model(dict.fromkeys(model.needed_features, IDS), training=False))
