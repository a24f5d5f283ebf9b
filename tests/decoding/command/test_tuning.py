import math

import pytest

from t2t_lite.decoding.command import tuning
from t2t_lite.decoding.command.decode_hparams import DEFAULT_GRID
from t2t_lite.decoding.command.tuning import GridTrial, parse_grid
from t2t_lite.errors import UserError
from tests.decoding.reversing import job_of


def test_every_combination_comes_once():
    assert parse_grid("beam_size=1,4;alpha=0,0.6") == [
        {"beam_size": 1},  # of one hypothesis alpha chooses nothing
        {"beam_size": 4, "alpha": 0.0},
        {"beam_size": 4, "alpha": 0.6},
    ]
    assert parse_grid("alpha=1,1,0 extra_length=9") == [{"alpha": a, "extra_length": 9} for a in (1.0, 0.0)]
    assert len(parse_grid(DEFAULT_GRID)) == 7
    assert len(parse_grid("beam_size=1,2 alpha=0,1 length_penalty=gnmt,power")) == 5  # nor the length penalty


@pytest.mark.parametrize(
    "grid, word",
    [("", "the grid is empty"), ("beam=1", "beam=1"), ("beam_size", "name=value"), ("beam_size=0", "beam_size=0"),
     ("beam_size=two", "two"), ("alpha=1;alpha=2", "twice"), ("length_penalty=hf", "hf")],
)  # fmt: skip
def test_mistakes_are_named(grid, word):
    with pytest.raises(UserError, match=word) as caught:
        parse_grid(grid)
    assert str(caught.value).startswith("--tune: ")


def test_a_dev_set_is_translated_with_each_combination(tmp_path, monkeypatch):
    """Outputs are lines reversed; a reference is longer by a word, and of the second line in capitals.

    A line takes a second of beam size 1, and of any beam size the first line takes a minute more, to warm up.
    """
    lines = ["a b c d", "e f g h", "i j k l"]
    references = ["d c b a x", "H G F E x", "l k j i x"]
    for name, texts in (("in", lines), ("ref", references)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    monkeypatch.chdir(tmp_path)
    job, now = job_of(tmp_path, tokenization="13a"), [0]
    translate = job.translator.translate

    def slow(sources, **options):
        now[0] += len(sources) * options["beam_size"] + 60 * (len(sources) == 1)
        return translate(sources, **options)

    job.translator.translate = slow
    monkeypatch.setattr(tuning.time, "monotonic", lambda: now[0])
    found = tuning.tune_search(job, "beam_size=1,2;alpha=0,0.5", "dev", "in", "ref")
    rows = [line.split() for line in found[3:]]  # behind three signatures
    assert [row[:2] for row in rows[:4]] == [["beam_size", "alpha"], ["1", "-"], ["2", "0.0"], ["2", "0.5"]]
    # 8 of 12 words are right, of 9 pairs 6, of 6 triples 4, of 3 quadruples 2: each 2/3; 12 words for 15
    brevity = math.exp(1 - 15 / 12)
    assert {tuple(row[2:3] + row[5:6]) for row in rows[1:4]} == {(f"{100 * brevity * 2 / 3:.2f}", f"{brevity:.3f}")}
    assert [row[-1] for row in rows[1:4]] == ["3.0", "6.0", "6.0"]
    assert rows[4] == ["best:", "--decode_hparams=beam_size=1"]
    given = [(options["beam_size"], options["alpha"], options["count"]) for options in job.translator.given]
    combinations = ((1, 0.6), (2, 0.0), (2, 0.5))
    assert given == [(beam, alpha, count) for beam, alpha in combinations for count in (1, 3)]  # 1: to warm up


@pytest.mark.parametrize(("settings", "fields"), [("sampling_method=random", {}), ("", {"mbr": "chrf"})])
def test_samples_are_not_tuned(tmp_path, settings, fields):
    with pytest.raises(UserError, match=r"--tune tries .*sampling_method"):
        tuning.tune_search(job_of(tmp_path, settings, **fields), "beam_size=1", "dev", "in", "ref")


def test_the_table_and_the_best():
    def trial(beam, bleu, chrf=50.0, seconds=0.0, **settings):
        return GridTrial({"beam_size": beam, **settings}, {"sacreBLEU": bleu, "chrF2": chrf, "BP": 1}, seconds)

    for trials, best in (
        ([trial(1, 30.0), trial(4, 31.001), trial(8, 31.004)], 4),  # as good as 8 to two decimals, and quicker
        ([trial(1, 0.0, 9.0), trial(4, 0.0, 9.5), trial(8, 0.0, 9.5)], 4),
        ([trial(4, 31.02), trial(8, 31.04)], 8),
    ):
        assert tuning.best_trial(trials).settings == {"beam_size": best}
    lines = tuning.table([trial(1, 30.0), trial(4, 31.001, seconds=12.34, alpha=0.6)])
    assert [line.split() for line in lines] == [
        ["beam_size", "alpha", "sacreBLEU", "chrF2", "BP", "seconds"],
        ["1", "-", "30.00", "50.00", "1.000", "0.0"],
        ["4", "0.6", "31.00", "50.00", "1.000", "12.3"],
    ]
    assert len(set(map(len, lines))) == 1
