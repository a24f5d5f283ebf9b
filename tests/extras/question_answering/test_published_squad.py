"""SQuAD under tensor2tensor's name, on small files with the published names."""

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from tests.data.stored import read_examples
from tests.extras.question_answering.squads import QUESTIONS, squad


def test_answers(tmp_path):
    for split in ("train", "dev"):
        (tmp_path / f"{split}-v1.1.json").write_text(squad(*QUESTIONS))
    problem = registry.problem("squad")
    problem.approx_vocab_size = 310
    problem.generate_data(str(tmp_path), str(tmp_path))
    encoders = problem.get_feature_encoders(str(tmp_path))
    rows = list(read_examples(Records(problem, str(tmp_path), DatasetSplit.EVAL).paths))
    assert len(rows) == len(QUESTIONS)
    for row in rows:
        first, last = row["targets"]
        assert encoders["inputs"].decode(row["inputs"][first - 1 : last]) == "London"
