# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Train, translate, look at attention
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/)
# (in the dialog, choose *Upload* and this file)
#
# This notebook trains the Transformer of [Attention Is All You Need](https://arxiv.org/abs/1706.03762) to translate
# English into German, in less than ten minutes on two CPU cores and without downloading any data. Then it
# translates sentences that were not in the training data, scores them, and draws what the model attends to.
#
# The data are the *phrasebook*: sentences that a grammar generates. The test set consists of combinations of words
# that never occur in training. The phrasebook shows that everything works, and says nothing about quality on real
# text; for your own sentence pairs, replace the first step as in [the tutorial](../docs/tutorial.md).

# %% [markdown]
# ## Installation
#
# The next cell does nothing if the package is installed. In Colab, upload the wheel (`pip wheel --no-deps .` in the
# repository makes it) by the file browser on the left, or set `PACKAGE` to `git+https://…`, the address of the
# repository.

# %%
import glob
import importlib.util
import subprocess
import sys

PACKAGE = (glob.glob("t2t_lite-*.whl") or ["t2t_lite"])[0]

if importlib.util.find_spec("t2t_lite") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", PACKAGE], check=True)

# %% [markdown]
# ## Settings
#
# `T2T_LITE_STEPS` sets another number of steps; everything below also runs after two.

# %% tags=["parameters"]
import os

TRAIN_STEPS = int(os.environ.get("T2T_LITE_STEPS", "1000"))
FOLDER = os.environ.get("T2T_LITE_FOLDER", "phrasebook")
DATA, RUN = f"{FOLDER}/data", f"{FOLDER}/train"

# %%
import logging

from t2t_lite.process.quiet_import import import_tensorflow

import_tensorflow()  # without its messages about processors

import t2t_lite
from t2t_lite import registry

logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
logging.getLogger("t2t_lite").setLevel(logging.INFO)

# %% [markdown]
# ## Data
#
# A *problem* says where sentence pairs come from. `generate_data` learns a vocabulary of word pieces and writes the
# pairs as records. `t2t-datagen --problem=translate_ende_phrasebook --data_dir=phrasebook/data` is the same on the
# command line.

# %%
problem = registry.problem("translate_ende_phrasebook")
os.makedirs(DATA, exist_ok=True)
problem.generate_data(DATA, FOLDER)

# %% [markdown]
# This is what the model reads: ids of pieces. `▁` stands for a space. Id 1, which ends each sentence, is not shown.

# %%
encoder = problem.get_feature_encoders(DATA)["inputs"]
ids = encoder.encode("The old woman buys a green car.")
print(ids)
print(*(encoder.decode_list(ids)))
print(f"{encoder.vocab_size:,} pieces for both languages")

# %% [markdown]
# ## Training
#
# `transformer_quickstart` has two layers per side with 128 channels. The trainer saves a checkpoint and evaluates
# the model at regular intervals; if you interrupt this cell, running it again continues where it stopped, bit for
# bit.

# %%
from t2t_lite.training import CheckpointSettings, Trainer

trainer = Trainer(
    problem="translate_ende_phrasebook",
    hparams_set="transformer_quickstart",
    data_dir=DATA,
    output_dir=RUN,
    checkpoints=CheckpointSettings(local_eval_frequency=max(1, TRAIN_STEPS // 10)),
)
metrics = trainer.train(TRAIN_STEPS)

# %% [markdown]
# The loss is counted in nats per target token. The perplexity is its exponential: the number of pieces among which
# the model still hesitates. BLEU is computed by sacreBLEU on real translations of dev sentences.

# %%
import matplotlib.pyplot as plt

from t2t_lite.extras.pictures.curves import points, read_log

log = read_log(RUN)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
for ax, name in zip(axes, ("loss", "bleu"), strict=True):
    ax.plot(*points(log, "evaluation", name), marker="o")
    ax.set(xlabel="step", ylabel={"loss": "dev loss (nats)", "bleu": "dev BLEU"}[name], ylim=(0, None))
    ax.grid(alpha=0.3)
plt.show()

# %% [markdown]
# ## Translation
#
# The run's folder is all that translation needs. Load a `Translator` once and call it often; lists are translated
# in batches. Ten test sentences and their references:

# %%
from IPython.display import Markdown

from t2t_lite.data.problem import DatasetSplit

translator = t2t_lite.Translator.load(RUN)
test = list(problem.generate_samples(DATA, FOLDER, DatasetSplit.TEST))[::15]  # every 15th of 1,500 sentences
translations = translator.translate([pair["inputs"] for pair in test], beam_size=4, alpha=0.6)

rows = [
    f"| {pair['inputs']} | {translation.text} | {'✓' if translation.text == pair['targets'] else pair['targets']} |"
    for pair, translation in zip(test[:10], translations[:10], strict=True)
]
Markdown("\n".join(["| English | translation | reference |", "|---|---|---|", *rows]))

# %% [markdown]
# All of them scored. The signature in parentheses says how, so that others can compare.

# %%
from t2t_lite.evaluation.scores import corpus_bleu

bleu = corpus_bleu([translation.text for translation in translations], [pair["targets"] for pair in test])
print(f"BLEU of {len(test)} sentences: {bleu}")

# %% [markdown]
# ## Attention
#
# `attend` translates a sentence and returns all attention weights: of the encoder, of the decoder, and of the
# decoder to the encoder's output (`memory`). Each row of a heat map is a piece that the decoder is about to write,
# each column a piece of the source.

# %%
from t2t_lite.visualization.attention_pictures import attend, draw_attention

attention = attend(translator, "The old woman buys a green car.")
draw_attention(attention["memory"], view="heat_map", heads=[1, 2])

# %% [markdown]
# The mean over the heads of one layer, drawn by matplotlib. `weights[layer]` is an array of [heads, queries, keys].

# %%
memory = attention["memory"]
weights = memory.weights[-1].mean(axis=0)

figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
image = ax.imshow(weights, cmap="Blues", vmin=0)
ax.set_xticks(range(len(memory.keys)), memory.keys, rotation=60)
ax.set_yticks(range(len(memory.queries)), memory.queries)
figure.colorbar(image, label="attention")
plt.show()

# %% [markdown]
# The same in the style of the paper's figures: lines between two columns, one colour per head, here from one word
# of the source.

# %%
draw_attention(attention["encoder"], view="lines", word="car")

# %% [markdown]
# ## Next steps
#
# * Your own sentence pairs: [docs/tutorial.md](../docs/tutorial.md).
# * What else `Translator` can do (n-best lists, sampling, forced prefixes, scores):
#   [docs/decoding.md](../docs/decoding.md).
# * Serving the model: `t2t-exporter --output_dir=phrasebook/train`, then [docs/serving.md](../docs/serving.md).
# * More pictures, and a model in the browser: [docs/visualization.md](../docs/visualization.md).
