"""Runs of a language model: its name on the command line, an exact resume, and what it learns."""

import math

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Text2SelfProblem, VocabType
from t2t_lite.errors import UserError
from t2t_lite.runs.directory import check_names, model_name
from tests.training.runs import SIZES, assert_same, log, state, trainer

NAME = "digits_in_order"
FLAGS = f"{SIZES},layer_prepostprocess_dropout=0.2,max_length=32"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder with data of a registered problem: texts of digits in order, 34567."""

    @registry.register_problem(NAME)
    class DigitsInOrder(Text2SelfProblem):
        is_generate_per_split = True
        vocab_type = VocabType.CHARACTER
        dataset_splits = tuple({"split": split, "shards": 1} for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL))

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            for length in range(3, 20):
                yield from ({"targets": "".join(str((first + i) % 10) for i in range(length))} for first in range(10))

    folder = str(tmp_path_factory.mktemp("digits"))
    registry.problem(NAME).generate_data(folder, folder)
    yield folder
    registry._problems.remove(NAME)


def test_transformer_means_the_decoder_alone_on_a_language_model_problem(digits, caplog):
    caplog.set_level("INFO", "t2t_lite")
    assert model_name("transformer", NAME) == model_name(None, NAME) == "transformer_lm"
    assert caplog.messages == [f"{NAME} is a problem of the task language_model: the model is transformer_lm"] * 2
    check_names({"problem": NAME, "model": "transformer_lm"}, model="transformer")
    with pytest.raises(UserError, match="trained with model=transformer\\. Leave"):
        check_names({"problem": "algorithmic_reverse_decimal40", "model": "transformer"}, model="transformer_lm")
    caplog.clear()
    assert model_name("transformer_lm", NAME) == "transformer_lm"
    assert model_name(None, "algorithmic_reverse_decimal40") == model_name() == "transformer"
    assert not caplog.messages


@pytest.mark.slow
def test_a_run_in_parts_is_bit_for_bit_the_run_in_one_and_learns(digits, tmp_path):
    settings = {"problem": NAME, "hparams_set": "transformer_lm_tiny", "local_eval_frequency": 20}
    settings["hparams"] = f"{FLAGS},learning_rate_schedule=constant,learning_rate_constant=0.01"
    metrics = trainer(digits, tmp_path / "whole", evaluates=True, model="transformer", **settings).train(60)
    trainer(digits, tmp_path / "parts", **settings).train(20)
    trainer(digits, tmp_path / "parts", **settings).train(60)
    assert_same(state(tmp_path / "parts", 60), state(tmp_path / "whole", 60))
    assert log(tmp_path / "parts", "resume")[0]["step"] == 20
    assert log(tmp_path / "whole", "evaluation")[-1]["bits_per_byte"] == pytest.approx(metrics["loss"] / math.log(2))
    # All but the first digit and the length follow from what is before: 1 / 10, then 1 / 17 on average.
    assert metrics["token_accuracy"] > 0.5
