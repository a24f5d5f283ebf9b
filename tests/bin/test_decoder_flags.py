"""What t2t-decoder hands on: to whom the input goes, how lines are translated, and what outputs depend on."""
# Nearest tests of: bin/t2t_decoder.py, t2t_lite/decoding/command/flag_checks.py
# Nearest tests of: t2t_lite/decoding/command/decode_files.py, t2t_lite/decoding/command/job.py

import pytest

from t2t_lite.bin import t2t_decoder
from t2t_lite.decoding.command import decode_files, decode_records, tuning
from t2t_lite.decoding.command import job as decoding_job
from t2t_lite.decoding.command.decode_hparams import DEFAULT_GRID
from t2t_lite.decoding.translator import Translator
from tests.decoding.runs import make_run

WAYS = {
    "tune": (tuning, "tune_search"),
    "interactive": (decode_files, "interact"),
    "scores": (decode_files, "score_file"),
    "file": (decode_files, "translate_file"),
    "records": (decode_records, "translate_records"),
    "stdin": (decode_files, "translate_stdin"),
}


TUNE = ["--tune", "--decode_from_file=in", "--decode_reference=ref"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def given(made, monkeypatch, tmp_path):
    """Calls the command; returns which way it went, with which DecodingJob, and with which other arguments."""
    for name in ("in", "ref", "pairs"):
        (tmp_path / name).write_text("a\n")
    monkeypatch.chdir(tmp_path)
    calls = []
    for way, (module, function) in WAYS.items():
        monkeypatch.setattr(module, function, lambda job, *args, way=way: calls.append((way, job, args)) or "")

    def given(*flags):
        calls.clear()
        assert t2t_decoder.main([f"--output_dir={made}", *flags]) == 0
        (call,) = calls
        return call

    return given


@pytest.mark.parametrize(
    ("flags", "way", "arguments"),
    [
        (["--decode_from_file=in"], "file", ("in", "", "", "")),
        (
            ["--decode_from_file=in", "--decode_to_file=out", "--decode_reference=ref", "--prefix_file=pairs"],
            "file",
            ("in", "out", "ref", "pairs"),
        ),
        (["--problem=translate_own", "--data_dir=.", "--decode_from_file=in"], "file", ("in", "", "", "")),
        (["--decode_from_file=parts", "--decode_shards=2", "--worker_id=1"], "file", ("parts", "", "", "")),
        (["--decode_from_file=parts", "--decode_hparams=shards=2"], "file", ("parts", "", "", "")),
        (["--decode_from_file=-"], "stdin", ("-",)),
        (["--decode_to_file=out"], "stdin", ("out",)),
        (["--decode_interactive"], "interactive", ()),
        (["--score_file=pairs"], "scores", ("pairs", "-")),
        (["--score_file=pairs", "--decode_to_file=out"], "scores", ("pairs", "out")),
        (["--problem=translate_own", "--data_dir=."], "records", ("eval", "")),
        (["--problem=translate_own", "--data_dir=.", "--notune"], "records", ("eval", "")),
        (["--eval_use_test_set", "--data_dir=.", "--decode_to_file=new/out.gz"], "records", ("test", "new/out.gz")),
        (["--tune", "--data_dir=.", "--eval_use_test_set"], "tune", (DEFAULT_GRID, "test", "", "")),
        (TUNE, "tune", (DEFAULT_GRID, "eval", "in", "ref")),
        (["--tune=beam_size=1", *TUNE[1:]], "tune", ("beam_size=1", "eval", "in", "ref")),
    ],
)
def test_where_the_input_goes_and_with_which_paths(given, flags, way, arguments):
    """Parts of a file may be files of their own, so that it need not exist."""
    found, _, others = given(*flags)
    assert (found, others) == (way, arguments)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--problem=translate_own", "--data_dir=.", "--prefix_file=in"], "only with --decode_from_file. "),
        (["--eval_use_test_set", "--data_dir=.", "--decode_reference=ref"], "--decode_reference cannot be used with"),
        (["--decode_interactive", "--alignments_file=links"], "--alignments_file cannot be used with --decode_"),
        (["--decode_interactive", "--ponder_file=steps"], "--ponder_file cannot be used with --decode_"),
        (["--decode_interactive", "--decode_to_file=out"], "--decode_to_file cannot be used with --decode_"),
        (["--decode_from_file=-", "--prefix_file=in"], "--prefix_file cannot be used with standard input"),
        (["--decode_from_file=in", "--decode_to_file=o.gz"], "--decode_to_file=- | gzip > o.gz"),
        (["--decode_from_file=-", "--decode_to_file=o.xz"], "--decode_to_file=- | xz > o.xz"),
        (["--decode_from_file=in", "--alignments_file=o.bz2"], "--alignments_file=- | bzip2 > o.bz2"),
        (["--decode_from_file=-", "--decode_to_file=out", "--keep_timestamp"], "--keep_timestamp cannot"),
        (["--decode_interactive", "--keep_timestamp"], "--keep_timestamp cannot"),
        ([*TUNE, "--decode_to_file=out", "--keep_timestamp"], "--decode_to_file, --keep_timestamp cannot be"),
        ([*TUNE, "--alignments_file=out"], "--alignments_file cannot be used with --tune"),
        ([*TUNE, "--n_best_format=json"], "--n_best_format cannot be used with --tune"),
        (["--score_file=in", "--n_best_format=json"], "--n_best_format cannot be used with --score_file"),
        (["--score_file=in", "--long_input=split"], "--long_input cannot be used with --score_file"),
        (["--score_file=in", "--split_sentences=always"], "--split_sentences cannot be used with --score_file"),
        (["--tune", "--data_dir=.", "--decode_interactive"], "--decode_interactive cannot be used with --tune"),
        (["--decode_from_file=in", "--score_file=in"], "--decode_from_file cannot be used with --score_file"),
        (["--decode_from_file=in", "--eval_use_test_set"], "--eval_use_test_set cannot be used"),
    ],
)
def test_no_flag_is_without_effect(made, tmp_path, monkeypatch, capsys, flags, message):
    monkeypatch.chdir(tmp_path)
    for name in ("in", "ref"):
        (tmp_path / name).write_text("a\n")
    assert t2t_decoder.main([f"--output_dir={made}", *flags]) == 2
    assert message in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"in", "ref"}


def test_parts_are_by_flags_or_by_settings(given):
    def part(*flags):
        settings = given("--decode_from_file=in", *flags)[1].settings
        return settings.shards, settings.shard_id

    assert part() == (1, 0)
    assert part("--decode_shards=3", "--worker_id=2") == (3, 2)
    assert part("--decode_hparams=shards=5,shard_id=4") == (5, 4)


PLAIN = {
    "long_input": None, "split_sentences": None, "utility": None, "tokenize": None, "as_json": False,
    "alignments": False, "told": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("flag", "option", "value"),
    [
        ("--long_input=refuse", "long_input", "refuse"),
        ("--split_sentences=always", "split_sentences", "always"),
        ("--mbr=bleu", "utility", "bleu"),
        ("--n_best_format=json", "as_json", True),
        ("--alignments_file=links", "alignments", True),
    ],
)
def test_a_flag_reaches_the_translation_of_lines(given, monkeypatch, flag, option, value):
    monkeypatch.setattr(Translator, "load", lambda *args: "translator")
    monkeypatch.setattr(decoding_job, "LineTranslator", lambda *args, **options: (args, options))
    of_bleu = [flag, "--mbr=bleu", "--tokenization=zh"], PLAIN | {option: value, "utility": "bleu", "tokenize": "zh"}
    for flags, expected in (([], PLAIN), ([flag], PLAIN | {option: value}), of_bleu):
        job = given("--decode_from_file=in", *flags)[1]
        assert job.lines_of("in") == (("translator", job.settings, "in"), expected | {"on_error": job.errors})


@pytest.mark.parametrize("flags", [["--score_file=-"], ["--decode_from_file=in", "--prefix_file=-"]], ids=str)
def test_only_the_file_to_decode_may_be_standard_input(made, monkeypatch, tmp_path, capsys, flags):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text("a\n")
    assert t2t_decoder.main([f"--output_dir={made}", *flags]) == 2
    assert f"{flags[-1]}: no such file" in capsys.readouterr().err
