"""Compares an encoder with Hugging Face's BERT of the same size: tokens per second in training and for features.

python -m benchmarks.encoder
python -m benchmarks.encoder --layers=12 --hidden=768

All sides have random weights, heads of size 64 and BERT's 30,522 ids. A row has 128 random ids, of which 15 % are
masked. Training steps use AdamW and dropout 0.1. `ours` computes logits only at the masked positions; `hf` is the
unchanged BertForMaskedLM, which computes logits at all positions; `hf_masked` uses BertForMaskedLM's layers and head,
but computes logits only at masked positions. Features are the concatenation of the last four layers. Every side runs in
a separate process and is warmed up.
"""

import argparse
import sys

from benchmarks.harness.command import compare, main, sizes_of
from benchmarks.harness.steps import new_step
from benchmarks.harness.turns import answer_turns

TITLE = "An encoder against Hugging Face's BERT"
SIDES = {"ours": "t2t_lite", "hf": "BertForMaskedLM", "hf_masked": "BertForMaskedLM at masked positions"}
NEEDS = {"hf": ["torch", "transformers"], "hf_masked": ["torch", "transformers"]}
VOCAB, HEAD_SIZE, MASK_RATE, MASK, POSITIONS = 30_522, 64, 0.15, 3, 512


def our_model(flags):
    """Returns (hparams, model)."""
    from t2t_lite import registry
    from t2t_lite.runs.run_config import build_model

    sizes = {"hidden_size": flags.hidden, "filter_size": 4 * flags.hidden, "num_heads": flags.hidden // HEAD_SIZE}
    hparams = registry.hparams("bert_base").override_from_dict(
        {**sizes, "num_hidden_layers": flags.layers, "max_position": POSITIONS, "clip_grad_norm": 0.0}
    )
    config = {"model": "transformer_encoder", "vocab_size": VOCAB, "target_vocab_size": None}
    return hparams, build_model({**config, "hparams": hparams.values()})


def our_step(flags):
    """Returns a function that trains on ids and targets [batch, length]; targets are 0 where nothing is masked."""
    from t2t_lite.training.training_data import StepBatches

    hparams, model = our_model(flags)
    step = new_step(lambda: model, hparams, features={"inputs": 2, "targets": 2})

    def train(ids, targets):
        placed = step.place(StepBatches([{"inputs": ids, "targets": targets}], 0))
        return float(step(placed)["objective"]["targets"])

    return train


def our_features(flags):
    """Returns a function (ids, targets) that computes features of the ids."""
    import tensorflow as tf

    from t2t_lite.decoding.predictor import features_of

    _, model = our_model(flags)
    model.build()
    features = tf.function(
        features_of(model, "last_four", "concat"), input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )
    return lambda ids, targets: features(tf.constant(ids)).numpy()


def their_config(flags):
    """Returns a BertConfig with the same sizes."""
    import torch
    from transformers import BertConfig

    torch.manual_seed(0)
    return BertConfig(
        vocab_size=VOCAB, hidden_size=flags.hidden, num_hidden_layers=flags.layers, intermediate_size=4 * flags.hidden,
        num_attention_heads=flags.hidden // HEAD_SIZE, max_position_embeddings=POSITIONS,
    )  # fmt: skip


def their_step(flags, masked_only):
    """Does the same as `our_step`, but with Hugging Face's BERT."""
    import torch
    from transformers import BertForMaskedLM

    model = BertForMaskedLM(their_config(flags)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

    def loss(ids, targets):
        if not masked_only:
            return model(input_ids=ids, labels=targets.masked_fill(targets == 0, -100)).loss
        hidden = model.bert(input_ids=ids).last_hidden_state
        return torch.nn.functional.cross_entropy(model.cls(hidden[targets != 0]), targets[targets != 0])

    def train(ids, targets):
        optimizer.zero_grad(set_to_none=True)
        value = loss(torch.tensor(ids).long(), torch.tensor(targets).long())
        value.backward()
        optimizer.step()
        return float(value)

    return train


def their_features(flags):
    """Does the same as `our_features`, but with Hugging Face's BERT."""
    import torch
    from transformers import BertModel

    model = BertModel(their_config(flags), add_pooling_layer=False).eval()

    def features(ids, targets):
        with torch.inference_mode():
            states = model(input_ids=torch.tensor(ids).long(), output_hidden_states=True).hidden_states
            return torch.cat(states[-4:], -1).numpy()

    return features


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8, help="rows per batch")
    parser.add_argument("--length", type=int, default=128, help="ids per row")
    parser.add_argument("--steps", type=int, default=5, help="steps per turn")


def measure(result, flags):
    """Compares training steps and the computation of features."""
    sizes = sizes_of(flags, layers=1, hidden=64, batch=2, length=16, steps=1)
    for work, sides in (("training step", [*SIDES]), ("features", ["ours", "hf"])):
        case = f"{work}, {sizes['layers']} x {sizes['hidden']}, {sizes['batch']} x {sizes['length']} ids"
        compare(sys.modules[__name__], result, flags, case, sides, rounds=5, trains=work == "training step", **sizes)


def side(name, trains, steps, **sizes):
    """Runs several steps in each turn; the steps either train or compute features."""
    import numpy as np

    flags = argparse.Namespace(**sizes)
    if name != "ours":
        work = their_step(flags, name == "hf_masked") if trains else their_features(flags)
    else:
        work = (our_step if trains else our_features)(flags)
    rng = np.random.default_rng(0)
    ids = rng.integers(MASK + 1, VOCAB, (flags.batch, flags.length)).astype("int32")
    masked = rng.random(ids.shape).argsort(1) < round(MASK_RATE * flags.length)
    batch = np.where(masked, MASK, ids).astype("int32"), np.where(masked, ids, 0).astype("int32")
    for _ in range(2):
        work(*batch)

    def turn():
        for _ in range(steps):
            work(*batch)
        return steps * ids.size

    answer_turns(turn)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
