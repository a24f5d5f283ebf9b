"""A loss per unit, which a problem declares."""

import math

import pytest

from t2t_lite.data.problem import Problem
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.evaluation.loss_units import losses_by_unit
from t2t_lite.evaluation.metrics import lower_is_better, metric_names
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import TextEncoder


class Dice(Problem):
    name = "dice"
    loss_metrics = ("bits_per_throw", "nats_per_game")

    def feature_encoders(self, data_dir):
        return dict.fromkeys(("inputs", "targets"), TextEncoder(9))

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        for number in range(40):
            self.unit_counts.update(throw=2)
            yield {"inputs": [2], "targets": [3 + number % 6, 4, 1]}


def test_a_problem_declares_its_units_and_counts_them(tmp_path):
    problem = Dice()
    problem.generate_data(str(tmp_path), str(tmp_path))
    counts = Records(problem, str(tmp_path), "eval").unit_counts()
    assert counts == {"id": 120, "throw": 80}
    names = metric_names(problem, HParams())
    assert {*problem.loss_metrics} <= {*names} and all(map(lower_is_better, problem.loss_metrics))
    assert losses_by_unit(1.0, counts, problem.loss_metrics) == {"bits_per_throw": pytest.approx(1.5 / math.log(2))}


def test_a_name_without_a_unit_is_refused():
    problem = Dice()
    for wrong in ("bits", "bans_per_throw", "bits_per_"):
        problem.loss_metrics = (wrong,)
        with pytest.raises(
            UserError, match=f"dice: loss_metrics has '{wrong}'. Expected names such as nats_per_<unit>"
        ):
            metric_names(problem, HParams())
