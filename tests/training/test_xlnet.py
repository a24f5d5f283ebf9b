"""Runs of XLNet: orders on eight replicas and an exact resume."""

import functools
import random

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from tests.interchange.xlnet_folders import WARM_AND_COLD
from tests.training.runs import assert_replicas_and_parts_give_one_run, trainer

pytestmark = pytest.mark.slow

SIZES = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=128,learning_rate_schedule=constant,"
    "attention_dropout=0.1,layer_prepostprocess_dropout=0.1,relu_dropout=0.1"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with sentences of two kinds of words."""
    folder = tmp_path_factory.mktemp("xlnet")
    draw = random.Random(1)
    kinds = [WARM_AND_COLD[kind] for kind in [*WARM_AND_COLD] * 150]
    lines = [f"{draw.choice(words)} in {draw.choice(words)}" for words in kinds]
    (folder / "a.txt").write_text("\n".join(lines))
    text = registry.problem("permutation_lm_own")
    text.configure([str(folder / "a.txt")], [str(folder / "a.txt")], sequence_length=31, vocab_size=300)
    text.generate_data(str(folder / "text"), str(folder))
    return folder


def permuted(data, output_dir, hparams="", rate=0.001, **settings):
    named = {"problem": "permutation_lm_own", "hparams_set": "xlnet_tiny", "model": "transformer"}
    sizes = f"{SIZES},learning_rate_constant={rate}{hparams}"
    return trainer(str(data / "text"), output_dir, sizes, **named, **settings)


def test_a_model_that_would_see_what_it_predicts_is_refused(data, tmp_path):
    with pytest.raises(UserError, match=r"does not read 'order', .* Expected a model that does, such as --model=xlnet"):
        trainer(
            str(data / "text"), tmp_path / "x", "num_hidden_layers=1,hidden_size=8,filter_size=8,num_heads=1",
            problem="permutation_lm_own", hparams_set="bert_tiny", model="transformer_encoder",
        ).train(1)  # fmt: skip


@pytest.mark.long
def test_eight_replicas_are_eight_batches_of_one_and_a_run_in_parts_is_that_in_one(data, tmp_path):
    assert_replicas_and_parts_give_one_run(functools.partial(permuted, data), tmp_path, 8)
