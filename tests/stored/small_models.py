"""The untrained models that a version stores beside the trained one: one per kind of model, task and foreign family.

Their weights have few different values, so that the archive stays small.
"""

import importlib
import os
import pathlib

import keras
import numpy as np

import t2t_lite
from t2t_lite import registry
from t2t_lite.export import export_hugging_face, import_hugging_face
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from t2t_lite.runs.run_config import build_model, run_config
from tests.decoding.runs import SENTENCES
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.hugging_face.gpt_folders import write_gpt
from tests.models.every_model import own_models
from tests.text.published_samples import write_words

SIZES = {"num_hidden_layers": 1, "hidden_size": 16, "filter_size": 16, "num_heads": 2, "max_position": 32}
_MARIAN = {
    "layer_preprocess_sequence": "none",
    "layer_postprocess_sequence": "dan",
    "norm_epsilon": 1e-5,
    "position_layout": "marian",
}
# Folder: problem, set, model, other hyperparameters. Each kind of model, each task, and two vocabularies beside BPE.
MODELS = {
    "universal_transformer": ("translate_own", "universal_transformer_tiny", "universal_transformer", {}),
    "adaptive_universal_transformer": (
        "translate_own", "adaptive_universal_transformer_tiny", "universal_transformer", {},
    ),
    "transformer_moe": ("translate_own", "transformer_moe_tiny", "transformer_moe", {}),
    "transformer_relative": ("translate_own", "transformer_relative_tiny", "transformer", {}),
    "lstm_seq2seq_attention": (
        "translate_own", "lstm_attention_tiny", "lstm_seq2seq_attention", {"num_hidden_layers": 2},
    ),
    "conv_seq2seq": ("translate_own", "conv_seq2seq_tiny", "conv_seq2seq", {}),
    "bytenet": ("translate_own", "bytenet_tiny", "bytenet", {}),
    "neural_gpu": ("algorithmic_reverse_decimal40", "neural_gpu_tiny", "neural_gpu", {}),
    "extended_neural_gpu": ("translate_own", "extended_neural_gpu_tiny", "extended_neural_gpu", {}),
    "kermit": ("translate_own", "kermit_tiny", "kermit", {}),
    "transformer_lm": ("languagemodel_own", "transformer_lm_tiny", "transformer_lm", {}),
    "transformer_memory": ("languagemodel_own", "transformer_memory_tiny", "transformer_memory", {}),
    "lstm_lm": ("languagemodel_own_characters", "lstm_lm_tiny", "lstm_lm", {}),
    "masked": ("masked_lm_own", "bert_tiny", "transformer_encoder", {}),
    "classes": ("classify_own", "bert_tiny", "transformer_encoder", {}),
    "numbers": ("regress_own", "bert_tiny", "transformer_encoder", {}),
    "tags": ("tag_own", "bert_tiny", "transformer_encoder", {}),
    "orders": ("permutation_lm_own", "xlnet_tiny", "xlnet", {}),
}  # fmt: skip
# The foreign families: what writes a folder of theirs, or the hyperparameters of a Transformer that becomes one.
FOLDERS = {
    "marian": _MARIAN,
    "blenderbot": {},
    "gpt2": write_gpt,
    "openai-gpt": lambda folder: write_gpt(folder, "openai-gpt", write_vocabulary=write_words),
    "bert": lambda folder: write_encoder(folder, "BertForMaskedLM"),
    "roberta": lambda folder: write_encoder(folder, "RobertaForMaskedLM"),
    "albert": lambda folder: write_encoder(folder, "AlbertForMaskedLM"),
    "ernie": lambda folder: write_encoder(folder, "ErnieForMaskedLM"),
    "distilbert": lambda folder: write_encoder(folder, "DistilBertForMaskedLM"),
    "electra": lambda folder: write_encoder(folder, "ElectraForMaskedLM"),
    "xlm-roberta": lambda folder: write_encoder(folder, "XLMRobertaForMaskedLM"),
    "xlnet": lambda folder: importlib.import_module("tests.extras.xlnet.xlnet_folders").write_xlnet(
        folder, "XLNetLMHeadModel"
    ),
}
_LINES = {
    "classify_own": lambda at, text: f"{('red', 'green')[at % 2]}\t{text}",
    "regress_own": lambda at, text: f"{at % 5}\t{text}",
    "tag_own": lambda at, text: "".join(f"{word}\t{'AB'[len(word) % 2]}\n" for word in text.split()),
}


def is_there(name):
    """Returns whether what a row or an archive's folder needs is there; extras have some models and families."""
    if name in MODELS:
        problem, _, model, _ = MODELS[name]
        return problem in registry.list_problems() and model in registry.list_models()
    return name in registry.list_families()


def lacking(names):
    """Returns what a version has and no row stands for, or what a stored archive, {folder names}, has not."""
    kinds = {model for name, (_, _, model, _) in MODELS.items() if name in names} | {"transformer"}
    return sorted(own_models() - kinds) + sorted({*registry.list_families()} - {n for n in FOLDERS if n in names})


def make_all(names=(*MODELS, *FOLDERS)):
    """Writes a run per row, and the foreign family's folder beside it; returns {name: its `answer`}."""
    for name in names:
        print(name, flush=True)
        if name in MODELS:
            _make(name, *MODELS[name])
        elif callable(write := FOLDERS[name]):
            theirs, tensors = write(pathlib.Path("theirs", name))
            write_tensors(os.path.join(theirs, "model.safetensors"), {n: _few(t) for n, t in tensors.items()})
            import_hugging_face(theirs, name)
        else:
            _make(name, "translate_own", "transformer_tiny", "transformer", write)
        if name in FOLDERS:
            export_hugging_face(t2t_lite.load(name), f"{name}.hugging_face")
    return {name: answer(name) for name in names}


def answer(path, model=None):
    """Returns what must stay of a run, or of a model beside it: the ids of a text, and logits, as JSON has them."""
    opened = t2t_lite.load(str(path))
    encoders, model = opened.problem.get_feature_encoders(str(path)), model or opened.model
    encoder = encoders.get("inputs", encoders["targets"])
    ids = encoder.encode("3 1 4 1 5" if opened.problem.name.startswith("algorithmic") else "the red house is old.")
    features = {name: ids for name in model.needed_features}
    outputs = model({name: np.array([row, row[::-1]], np.int32) for name, row in features.items()}, training=False)
    return {"ids": [int(number) for number in ids], "logits": _some(outputs)}


def _make(name, problem, hparams_set, model, changes):
    """Writes a run with the weights that a seed gives."""
    problem = registry.problem(problem)
    data = pathlib.Path("small_data", problem.name)
    data.mkdir(parents=True, exist_ok=True)
    if problem.name.endswith(("_own", "_own_characters")):
        lines = [_LINES.get(problem.name, lambda at, text: text)(at, text) + "\n" for at, text in enumerate(SENTENCES)]
        files = [str(data / f"text.{side}") for side in (("en", "de") if problem.name == "translate_own" else ("txt",))]
        for path in files:
            pathlib.Path(path).write_text("".join(lines), encoding="utf-8")
        sizes = {} if problem.name.endswith("characters") else {"vocab_size": 300}
        problem.configure(train_files=files, dev_files=files, **sizes)
    else:
        problem.train_size = problem.dev_size = 10
    problem.generate_data(str(data), str(data))
    known = registry.hparams(hparams_set).of_model(registry.model(model))
    sizes = {n: value for n, value in SIZES.items() if n in known.values()}
    hparams = problem.model_hparams(known.override_from_dict(sizes | changes))
    encoders = problem.get_feature_encoders(str(data))
    names = {"hparams_set": hparams_set}
    built = build_model(run_config(problem.full_name, model, hparams, encoders, **names))
    rng = np.random.default_rng(5)
    for weight in built.weights:
        if "float" in str(weight.dtype):
            weight.assign(_few(rng.normal(scale=0.3, size=weight.shape)))
    built.save_run(name, problem=problem, data_dir=str(data), hparams=hparams, step=1, **names)
    built.save(f"{name}.keras")


def _few(values):
    """Returns values rounded to eighths."""
    return np.round(np.asarray(values, np.float32) * 8) / 8


def _some(outputs):
    """Returns eight of the numbers that a model returns, all of its outputs together, but none of padding's logits.

    Folders of translation models do not hold these.
    """
    numbers = np.concatenate([np.asarray(array, np.float32).ravel() for array in keras.tree.flatten(outputs)])
    first, step = (3, len(numbers) // 8) if len(numbers) > 16 else (0, 1)
    return [round(float(number), 6) for number in numbers[first::step][:8]]
