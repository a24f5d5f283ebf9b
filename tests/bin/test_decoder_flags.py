"""What t2t-decoder hands on: to whom the input goes, how lines are translated, and what outputs depend on."""

import pytest

from t2t_lite.bin import _decode_files, _decode_lines, _decode_records, _decode_stream, _decode_tune, t2t_decoder
from t2t_lite.decoding import line_translation
from tests.decoding.runs import make_run

WAYS = {
    "tune": (_decode_tune, "tune"),
    "interactive": (_decode_stream, "interact"),
    "scores": (_decode_files, "score_file"),
    "file": (_decode_files, "translate_file"),
    "records": (_decode_records, "translate_records"),
    "stdin": (_decode_stream, "translate_stdin"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def given(made, monkeypatch, tmp_path):
    """Calls the command; returns which way it went, with which flags and settings."""
    for name in ("in", "ref", "pairs"):
        (tmp_path / name).write_text("a\n")
    monkeypatch.chdir(tmp_path)
    calls = []
    for way, (module, function) in WAYS.items():
        monkeypatch.setattr(module, function, lambda flags, settings, way=way: calls.append((way, flags, settings)))

    def given(*flags):
        calls.clear()
        assert t2t_decoder.main([f"--output_dir={made}", *flags]) == 0
        ((way, parsed, settings),) = calls
        return way, parsed, settings

    return given


@pytest.mark.parametrize(
    ("flags", "way"),
    [
        (["--decode_from_file=in"], "file"),
        (["--decode_from_file=-"], "stdin"),
        (["--decode_interactive"], "interactive"),
        (["--score_file=pairs"], "scores"),
        (["--problem=translate_own", "--data_dir=."], "records"),
        (["--eval_use_test_set", "--data_dir=."], "records"),
        (["--problem=translate_own", "--data_dir=.", "--decode_from_file=in"], "file"),
        (["--tune", "--data_dir=."], "tune"),
        (["--tune=beam_size=1", "--decode_from_file=in", "--decode_reference=ref"], "tune"),
    ],
)
def test_where_the_input_goes(given, flags, way):
    assert given(*flags)[0] == way


def test_parts_are_by_flags_or_by_settings(given):
    def part(*flags):
        _, _, settings = given("--decode_from_file=in", *flags)
        return settings.shards, settings.shard_id

    assert part() == (1, 0)
    assert part("--decode_shards=3", "--worker_id=2") == (3, 2)
    assert part("--decode_hparams=shards=5,shard_id=4") == (5, 4)


@pytest.fixture
def line_options(given, monkeypatch):
    """The options that lines are translated with under some flags."""
    noted = []
    monkeypatch.setattr(line_translation, "LineTranslator", lambda *args, **options: noted.append((args, options)))

    def line_options(*flags):
        _, parsed, settings = given("--decode_from_file=in", *flags)
        _decode_lines.line_translator(parsed, settings, "translator", "in", "errors")
        args, options = noted.pop()
        assert args == ("translator", settings, "in") and options.pop("on_error") == "errors"
        return options

    return line_options


PLAIN = {"long_input": None, "utility": None, "token_scores": False, "alignments": False}


@pytest.mark.parametrize(
    ("flag", "option", "value"),
    [
        ("--long_input=refuse", "long_input", "refuse"),
        ("--mbr=bleu", "utility", "bleu"),
        ("--n_best_format=json", "token_scores", True),
        ("--alignments_file=links", "alignments", True),
    ],
)
def test_a_flag_reaches_the_translation_of_lines(line_options, flag, option, value):
    assert line_options() == PLAIN
    assert line_options(flag) == PLAIN | {option: value}


@pytest.mark.parametrize(
    "flag",
    ["--long_input=refuse", "--on_error=skip", "--n_best_format=json", "--mbr=chrf", "--worker_gpu=0",
     "--logical_cpus=2", "--decode_hparams=alpha=0.1", "--decode_hparams=extra_length=3", "--decode_shards=2"],
)  # fmt: skip
def test_what_was_begun_under_another_flag_is_not_gone_on_with(given, flag):
    task = _decode_files.Task("in", ["a"], "out")
    made_from = []
    for flags in ([], [flag], []):
        _, parsed, settings = given("--decode_from_file=in", *flags)
        made_from.append(_decode_files._made_from(parsed, settings, task))
    assert made_from[0] == made_from[2] != made_from[1]


@pytest.mark.parametrize("change", [{"lines": ["b"]}, {"prefixes": ["x"]}])
def test_nor_of_another_input(given, change):
    _, parsed, settings = given("--decode_from_file=in")
    one, other = (_decode_files.Task("in", **{"lines": ["a"], "path": "out"} | more) for more in ({}, change))
    assert _decode_files._made_from(parsed, settings, one) != _decode_files._made_from(parsed, settings, other)


def test_what_is_only_shown_changes_nothing(given):
    task, found = _decode_files.Task("in", ["a"], "out"), []
    for flags in ([], ["--decode_hparams=log_results=true"]):
        _, parsed, settings = given("--decode_from_file=in", *flags)
        found.append(_decode_files._made_from(parsed, settings, task))
    assert found[0] == found[1]
