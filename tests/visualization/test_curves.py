import json

import matplotlib.image
import pytest

from t2t_lite.errors import UserError
from t2t_lite.visualization import curves


def write_log(folder, *lines, tail=""):
    folder.mkdir(exist_ok=True)
    (folder / "train.log").write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return str(folder)


def progress(step, loss):
    return {"event": "progress", "step": step, "loss": loss, "learning_rate": 0.1, "target_tokens_per_second": 9.0}


def test_steps_that_were_done_again_count_once(tmp_path):
    lines = {"event": "start", "step": 0}, progress(10, 3.0), progress(20, 2.5), {"event": "resume", "step": 10}
    run = write_log(tmp_path / "run", *lines, progress(20, 2.0), tail='{"event": "prog')
    assert curves.points(curves.read_log(run), "progress", "loss") == ([10, 20], [3.0, 2.0])


def test_values_that_were_not_finite_are_left_out(tmp_path):
    run = write_log(tmp_path / "run", progress(10, None), progress(20, 2.0))
    assert curves.points(curves.read_log(run), "progress", "loss") == ([20], [2.0])


@pytest.mark.slow
def test_the_picture_shows_every_run(tmp_path):
    evaluation = {"event": "evaluation", "step": 10, "loss": 2.0, "bleu": 12.0}
    best = {"event": "best", "step": 10, "best_step": 10, "metric": "bleu", "value": 12.0}
    one = write_log(tmp_path / "one", progress(10, 3.0), evaluation, best)
    other = write_log(tmp_path / "other", progress(10, 1.0), {"event": "skipped", "step": 4})
    paths = [str(tmp_path / name) for name in ("one.png", "both.png")]
    curves.draw_curves([one], paths[0])
    curves.draw_curves([one, other], paths[1])
    first, both = (matplotlib.image.imread(path) for path in paths)
    assert first.shape == both.shape
    assert (first != both).any()


@pytest.mark.slow
@pytest.mark.few("token_accuracy")
@pytest.mark.parametrize("score", ["bleu", "token_accuracy", "exact_sequence_accuracy"])
def test_the_score_of_any_problem_is_drawn(tmp_path, score):
    """A better one gives another picture."""
    pictures = []
    for value in (0.2, 0.9):
        evaluations = [{"event": "evaluation", "step": step, "loss": 2.0, score: step * value} for step in (10, 20)]
        run = write_log(tmp_path / "run", progress(10, 3.0), *evaluations)
        curves.draw_curves([run], str(tmp_path / "x.png"))
        pictures.append(matplotlib.image.imread(str(tmp_path / "x.png")))
    assert (pictures[0] != pictures[1]).any()


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(UserError, match=r"train.log: no such file"):
        curves.draw_curves([str(tmp_path)], str(tmp_path / "x.png"))
    run = write_log(tmp_path / "run", {"event": "start", "step": 0})
    with pytest.raises(UserError, match="no step is logged"):
        curves.draw_curves([run], str(tmp_path / "x.png"))


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/data/runs/base"], ["base"]),
        (["base/", "./big"], ["base", "big"]),
        (["/a/one/train", "/a/other/train"], ["one/train", "other/train"]),
        (["/a/train", "/a/train/best"], ["train", "best"]),
        (["/a/price$1", "/a/tab\there"], [r"price\$1", "tab�here"]),
    ],
)
def test_a_run_is_called_by_what_tells_it_from_the_others(paths, names):
    assert curves.short_names(paths) == names


@pytest.mark.slow
def test_names_of_any_length_fit_the_picture(tmp_path):
    paths = [str(tmp_path / ("x" * 200) / f"{'y' * 90}{end}{'z' * 90}") for end in "ab"]
    names = curves.short_names([*paths, "_hidden"])
    assert len({*names}) == 3
    assert max(map(len, names)) <= 45
    runs = [write_log(tmp_path / name, progress(10, 3.0), progress(20, 2.0)) for name in ("_one", "$two", "y" * 250)]
    figures = []
    for run in ([runs[0]], runs):
        curves.draw_curves(run, str(tmp_path / "x.png"))
        figures.append(matplotlib.image.imread(str(tmp_path / "x.png")).shape)
    assert figures[0] == figures[1]
