"""A run of a Universal Transformer that decides in how many steps it thinks about each piece."""

from t2t_lite import registry
from tests.decoding.runs import SENTENCES, make_problem_run

ACT = {"recurrence_type": "act", "act_max_steps": 3, "act_halting_bias_init": 0.0, "position_start_index": "step"}


def make_pondering_run(folder):
    """Returns the output_dir of a model with random weights, in an empty folder."""
    (folder / "data").mkdir()
    texts = [folder / f"a.{language}" for language in ("en", "de")]
    for path in texts:
        path.write_text("".join(f"{sentence}\n" for sentence in SENTENCES), encoding="utf-8")
    problem = registry.problem("translate_own")
    files = [*map(str, texts)]
    problem.configure(train_files=files, dev_files=files, vocab_size=330)
    return make_problem_run(problem, "universal_transformer", folder, **ACT)
