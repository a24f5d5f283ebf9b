"""A run directory as t2t-trainer leaves it, in two seconds: a small model with random weights.

What one test has asked for, another one gets a copy of.
"""

import functools
import pathlib
import shutil
import tempfile

import keras
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.folder import encoder_files
from t2t_lite.files import copy_files
from t2t_lite.runs.run_config import build_model, write_run_config
from t2t_lite.runs.weights import trackable_weights

TEXT = "the red house is old and a green tree was new der rote Haus ist alt und ein grün Baum war neu"
SENTENCES = [" ".join(TEXT.split()[i * k % 22] for k in range(1, 3 + i % 7)) + "." for i in range(60)]

_TEMPLATES = tempfile.TemporaryDirectory()  # until the process ends: data remember the files that they are of


def _made_once(make):
    @functools.wraps(make)
    def copied(folder, *args, **options):
        template = templates.setdefault(
            repr((args, sorted(options.items()))), pathlib.Path(_TEMPLATES.name, f"{make.__name__}-{len(templates)}")
        )
        if not template.exists():
            make(template, *args, **options)
        shutil.copytree(template, folder, dirs_exist_ok=True)
        return folder / "run"

    templates = {}
    return copied


@_made_once
def make_run(folder, steps=(100,), seed=0, vocab_size=330, model="transformer", **hparams):
    """Writes data into <folder>/data and a run with one checkpoint a step into <folder>/run; returns the latter."""
    (folder / "data").mkdir(parents=True)
    texts = {}
    for name in ("a.en", "a.de"):
        texts[name] = folder / name
        texts[name].write_text("".join(f"{sentence}\n" for sentence in SENTENCES), encoding="utf-8")
    files = [str(path) for path in texts.values()]
    problem = registry.problem("translate_own")
    problem.configure(train_files=files, dev_files=files, vocab_size=vocab_size)
    return make_problem_run(problem, model, folder, steps, seed, **hparams)


@_made_once
def make_language_model_run(folder, steps=(100,), seed=0, vocab_size=300, **hparams):
    """The same of a language model with learned positions."""
    (folder / "data").mkdir(parents=True)
    text = folder / "text"
    text.write_text("".join(f"{sentence}\n" for sentence in SENTENCES), encoding="utf-8")
    problem = registry.problem("languagemodel_own")
    problem.configure(train_files=[str(text)], dev_files=[str(text)], vocab_size=vocab_size, sequence_length=32)
    hparams = {"pos": "emb", "max_position": 32} | hparams
    return make_problem_run(problem, "transformer_lm", folder, steps, seed, **hparams)


@_made_once
def make_encoder_run(folder, name, text, steps=(100,), seed=0, **arguments):
    """The same of an encoder, of a problem with one file; large weights make different answers to different texts."""
    (folder / "data").mkdir(parents=True)
    path = folder / "text"
    path.write_text(text, encoding="utf-8")
    problem = registry.problem(name)
    problem.configure(train_files=[str(path)], dev_files=[str(path)], **{"vocab_size": 300} | arguments)
    sizes = {"num_hidden_layers": 2, "max_position": 25, "initializer_gain": 0.5}
    return make_problem_run(problem, "transformer_encoder", folder, steps, seed, **sizes)


def make_problem_run(problem, model, folder, steps=(100,), seed=0, **hparams):
    """The same of a problem, configured, and the name of its model."""
    data, output_dir = folder / "data", folder / "run"
    problem.generate_data(str(data), str(folder))
    encoders = problem.get_feature_encoders(str(data))
    settings = {"num_hidden_layers": 1, "hidden_size": 16, "filter_size": 32, "num_heads": 2} | hparams
    hparams_set = "bert_tiny" if model == "transformer_encoder" else f"{model}_tiny"
    known = registry.hparams(hparams_set).of_model(registry.model(model))
    is_one = encoders["targets"] is encoders.get("inputs", encoders["targets"])
    config = {
        "problem": problem.full_name,
        "model": model,
        "hparams_set": hparams_set,
        "vocab_size": encoders["targets" if is_one else "inputs"].vocab_size,
        "target_vocab_size": None if is_one else encoders["targets"].vocab_size,
        "vocabulary_sha256": {side: encoder.fingerprint for side, encoder in encoders.items()},
        "usr_dir": "",
        "hparams": problem.model_hparams(known.override_from_dict(settings)).values(),
    }
    output_dir.mkdir()
    write_run_config(str(output_dir), config)
    copy_files(encoder_files(problem, str(data)), str(output_dir))
    for step in steps:
        keras.utils.set_random_seed(seed + step)
        model = build_model(config)
        checkpoint = tf.train.Checkpoint(model=trackable_weights(model))
        manager = tf.train.CheckpointManager(checkpoint, str(output_dir), max_to_keep=5, checkpoint_name="model.ckpt")
        manager.save(checkpoint_number=step)
    return output_dir
