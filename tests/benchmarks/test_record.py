"""Results of benchmarks: their figures, how they are kept, and what they refuse."""

import json
import os
import subprocess

import pytest

from benchmarks.harness import record, report
from t2t_lite.errors import UserError
from tests.benchmarks.results import result


def test_ratios_are_of_neighbouring_turns():
    (measurement,) = result().measurements
    assert measurement["sides"]["ours"] == {"median": 110, "low": 100, "high": 240, "turns": [100, 110, 240]}
    # 110 / 60, the ratio of the medians, would be 1.83
    assert measurement["ratios"] == {"peer": {"median": 2, "low": 1.1, "high": 4, "turns": [2, 1.1, 4]}}


def test_every_figure_of_a_turn_becomes_a_measurement():
    found = record.Result("a", "A", "make")
    found.add_turns("batch 8", {"ours": [{"seconds": 2, "peak_mb": 800}], "peer": [{"seconds": 4, "peak_mb": 400}]})
    assert [(m["figure"], m["ratios"]["peer"]["median"]) for m in found.measurements] == [
        ("seconds", 0.5),
        ("peak_mb", 2),
    ]
    with pytest.raises(ValueError, match="parsecs"):
        found.add("batch 8", "parsecs", {"ours": [1]})


def test_the_same_outputs_are_counted_among_all_that_there_are():
    found = record.Result("a", "A", "make")
    found.add_same_outputs("4 sentences", {"ours": ["1 2", "", "3"], "peer": ["1 2", "", "4"]})
    sides = found.measurements[0]["sides"]
    assert (sides["ours"]["median"], sides["peer"]["median"]) == (100, record.rounded(200 / 3))


@pytest.mark.parametrize(
    "value, text",
    [
        (0.91239, "0.912"),
        (36.22, "36.2"),
        (415.7, "416"),
        (2760, "2,760"),
        (76878256888101, "7.69e13"),
        (1e9, "1.00e9"),
    ],
)
def test_figures_are_shown_with_three_digits_or_whole(value, text):
    assert record.shown(value) == text


def test_growth_is_the_slope_of_the_later_half():
    found = record.Result("growth", "Growth", "make")
    # 500 in the earlier half, where caches fill up, then 10 MB for each 100 steps
    points = [(100, 500), (200, 800), (300, 1000), (400, 1010), (500, 1020), (600, 1030)]
    found.add_growth("training", "resident_mb", "steps", {"ours": points, "flat": [(x, 7) for x, _ in points]})
    sides = found.growth[0]["sides"]
    assert sides["ours"]["slope"] == 0.1
    assert sides["ours"]["later"] == record.rounded(20 / 1020)
    assert sides["flat"]["slope"] == sides["flat"]["later"] == 0


@pytest.mark.parametrize("command", ["", "  \n"])
def test_a_result_without_its_command_is_not_written(tmp_path, command):
    with pytest.raises(UserError, match="decoding: has no command"):
        report.write_result(result(command=command), tmp_path)
    assert not os.listdir(tmp_path)


def test_a_result_without_figures_is_not_written(tmp_path):
    with pytest.raises(UserError, match="no figures"):
        report.write_result(record.Result("a", "A", "make"), tmp_path)
    assert not os.listdir(tmp_path)


def test_a_result_is_kept_and_never_overwritten(tmp_path):
    kept = result()
    kept.add_growth("training", "resident_mb", "steps", {"ours": [(x, 100 + x) for x in range(8)]})
    first, second = report.write_result(kept, tmp_path), report.write_result(result(), tmp_path)
    assert [os.path.basename(path) for path in (first, second)] == ["decoding_2026-01-02", "decoding_2026-01-02_2"]
    assert sorted(os.listdir(first)) == ["README.md", "plot.png", "result.json"]
    assert record.read_result(os.path.join(first, "result.json")) == kept
    with open(os.path.join(first, "plot.png"), "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"name": "a", "title": "A", "command": ""}', "no command"),
        ('{"name": "a"}', "not a benchmark result"),
        ("[", "result.json"),
    ],
)
def test_what_is_no_result_is_said(tmp_path, content, message):
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        record.read_result(path)


def test_a_command_is_as_typed_in_the_root():
    root = record.REPOSITORY
    argv = ["/somewhere/.venv/bin/python3", "-m", "benchmarks.decoding", f"{root}/bench/run", "--text=two words"]
    assert record.command_line(argv) == "python3 -m benchmarks.decoding bench/run '--text=two words'"
    assert record.command_line([]) == ""


def test_a_new_result_knows_where_it_was_measured():
    found = record.new_result("a", "A", {"ours": "t2t_lite"}, ["python", "-m", "benchmarks.a"])
    assert found.command == "python -m benchmarks.a"
    assert found.machine["cores"] == len(os.sched_getaffinity(0))
    assert {"python", "t2t_lite", "tensorflow", "keras"} <= set(found.versions)
    git = ["git", "-C", str(record.REPOSITORY), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, timeout=300)
    assert found.commit.rstrip("+") == (done.stdout.strip() if done.returncode == 0 else "unknown")


def test_the_json_is_plain():
    fields = json.loads(result().to_json())
    assert fields["command"] == "python -m benchmarks.decoding"
    assert "missing" not in fields  # what is empty is left out
