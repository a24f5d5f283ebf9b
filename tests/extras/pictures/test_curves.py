"""The curves of runs: what is read of their logs, and what is drawn."""

import matplotlib.image
import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.pictures import curves
from t2t_lite.visualization import drawing
from tests.extras.pictures.run_logs import progress, write_log


def test_steps_that_were_done_again_count_once(tmp_path):
    lines = {"event": "start", "step": 0}, progress(10, 3.0), progress(20, 2.5), {"event": "resume", "step": 10}
    run = write_log(tmp_path / "run", *lines, progress(20, 2.0), tail='{"event": "prog')
    assert curves.points(curves.read_log(run), "progress", "loss") == ([10, 20], [3.0, 2.0])


def test_values_that_were_not_finite_are_left_out(tmp_path):
    """Not those that are 0, such as the learning rate of a first step or the BLEU of an early checkpoint."""
    run = write_log(tmp_path / "run", progress(10, None), progress(20, 2.0), progress(30, 0.0), progress(40, 0))
    assert curves.points(curves.read_log(run), "progress", "loss") == ([20, 30, 40], [2.0, 0.0, 0])


@pytest.fixture
def drawn(monkeypatch):
    """Function of runs' folders that returns {label of an axis: its lines, (marker, steps, values)}."""
    figures = []
    monkeypatch.setattr(drawing, "write_picture", lambda path, figure: figures.append(figure))

    def draw(*folders):
        curves.draw_curves([*folders], "x.png")
        lines = {axes.get_ylabel(): axes.get_lines() for axes in figures[-1].axes}
        return {
            label: [(line.get_marker(), list(line.get_xdata()), list(line.get_ydata())) for line in of_axes]
            for label, of_axes in lines.items()
        }

    return draw


def test_what_is_drawn(drawn, tmp_path):
    """The star is at the newest best checkpoint, on the axes of its metric."""
    rows = [progress(10, 3.0) | {"learning_rate": 0.2}, progress(20, 2.5) | {"target_tokens_per_second": 11.0}]
    rows += [{"event": "evaluation", "step": step, "loss": 2.0 + step / 100, "bleu": step / 2} for step in (10, 20, 30)]
    for step in (10, 20):
        rows.append({"event": "best", "step": step + 3, "best_step": step, "metric": "bleu", "value": step / 2})
    rows += [
        {"event": "best", "step": 33, "best_step": 30, "metric": "ter", "value": 1.0},
        {"event": "skipped", "step": 15},
    ]
    expected = {
        "loss (nats per target token)": [
            ("None", [10, 20], [3.0, 2.5]), ("o", [10, 20, 30], [2.1, 2.2, 2.3]), ("x", [15], [0]),
        ],
        "BLEU, dev": [("o", [10, 20, 30], [5, 10, 15]), ("*", [20], [10])],
        "learning rate": [("None", [10, 20], [0.2, 0.1])],
        "target tokens per second": [("None", [10, 20], [9.0, 11.0])],
    }  # fmt: skip
    assert drawn(write_log(tmp_path / "run", *rows)) == expected
    best = {"event": "best", "step": 33, "best_step": 10, "metric": "loss", "value": 2.1}
    losses = drawn(write_log(tmp_path / "run", *rows, best))["loss (nats per target token)"]
    assert losses[2] == ("*", [10], [2.1])
    assert "no evaluation" in drawn(write_log(tmp_path / "run", progress(10, 3.0)))


def test_a_score_of_0_is_drawn(drawn, tmp_path):
    rows = [{"event": "evaluation", "step": step, "loss": 2.0, "bleu": 0.0} for step in (0, 10)]
    best = {"event": "best", "step": 0, "best_step": 0, "metric": "bleu", "value": 0.0}
    found = drawn(write_log(tmp_path / "run", progress(0, 0.0) | {"learning_rate": 0.0}, *rows, best))
    assert found["BLEU, dev"] == [("o", [0, 10], [0.0, 0.0]), ("*", [0], [0.0])]
    assert found["learning rate"] == [("None", [0], [0.0])]


def test_the_picture_shows_every_run(drawn, tmp_path):
    runs = [write_log(tmp_path / name, progress(10, loss)) for name, loss in (("one", 3.0), ("other", 1.0))]
    shown = drawn(*runs)["loss (nats per target token)"]
    assert [values for marker, _, values in shown if marker == "None"] == [[3.0], [1.0]]


@pytest.mark.parametrize(
    ("score", "label"),
    [("token_accuracy", "token_accuracy, dev"), ("entity_f1", "entity F1, dev"), ("bits_per_byte", "no evaluation")],
)
def test_the_score_of_any_problem_is_drawn(drawn, tmp_path, score, label):
    evaluations = [{"event": "evaluation", "step": step, "loss": 2.0, score: step / 50} for step in (10, 20)]
    expected = [("o", [10, 20], [0.2, 0.4])] if score != "bits_per_byte" else []
    assert drawn(write_log(tmp_path / "run", progress(10, 3.0), *evaluations))[label] == expected


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(UserError, match=r"train.log: no such file"):
        curves.draw_curves([str(tmp_path)], str(tmp_path / "x.png"))
    run = write_log(tmp_path / "run", {"event": "start", "step": 0})
    with pytest.raises(UserError, match="does not have any steps"):
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
