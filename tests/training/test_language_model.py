"""A language model learns a language to within a hundredth of its entropy."""

import math

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Text2SelfProblem, VocabType
from tests.training.runs import trainer


def brackets(count, seed, length=32, deepest=3):
    """Yields (text, nats): the beginning of nested brackets of two kinds, and minus the log of its probability.

    At most three are open at once. Where a bracket may open or close, both are equally likely, and so are the kinds.
    """
    draw = np.random.default_rng(seed)
    for _ in range(count):
        text, opened, nats = "", "", 0.0
        while len(text) < length:
            opens = not opened or (len(opened) < deepest and draw.random() < 0.5)
            nats += math.log(2) * (opens + (0 < len(opened) < deepest))
            opened += draw.choice([*"(["]) if opens else ""
            text += opened[-1] if opens else {"(": ")", "[": "]"}[opened[-1]]
            opened = opened if opens else opened[:-1]
        yield text, nats


@pytest.mark.long
def test_a_language_is_learned_to_within_a_hundredth_of_its_entropy(tmp_path):
    """A closing bracket depends on one that can be far away. That a text ends after 32 is certain."""
    splits = {DatasetSplit.TRAIN: (8000, 1), DatasetSplit.EVAL: (800, 2)}  # texts, seed

    @registry.register_problem("brackets")
    class Brackets(Text2SelfProblem):
        is_generate_per_split = True
        vocab_type = VocabType.CHARACTER
        dataset_splits = tuple({"split": split, "shards": 1} for split in splits)

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield from ({"targets": text} for text, _ in brackets(*splits[dataset_split]))

    try:
        registry.problem("brackets").generate_data(str(tmp_path), str(tmp_path))
        hparams = (
            "num_hidden_layers=2,hidden_size=64,filter_size=128,num_heads=4,batch_size=2048,attention_dropout=0,"
            "learning_rate_schedule=constant*linear_warmup*single_cycle_cos_decay,learning_rate_constant=0.003,"
            "learning_rate_warmup_steps=80"
        )
        settings = {"problem": "brackets", "model": "transformer_lm", "hparams_set": "transformer_lm_tiny"}
        settings["local_eval_frequency"] = 1000
        metrics = trainer(str(tmp_path), tmp_path / "run", hparams, evaluates=True, **settings).train(1000)
    finally:
        registry.Registries.problems.remove("brackets")
    texts, nats = zip(*brackets(*splits[DatasetSplit.EVAL]), strict=True)
    entropy = sum(nats) / sum(len(text) + 1 for text in texts)  # per token, the end included
    assert 0.995 < metrics["loss"] / entropy < 1.01
