"""t2t-translate-all on two checkpoints of a small model with random weights."""

# Nearest tests of: extras/translate_all/checkpoint_translations.py, extras/translate_all/decoder_command.py,
# Nearest tests of: extras/translate_all/t2t_translate_all.py

import json
import os
import shutil
import types

import pytest

from t2t_lite.bin import _app
from t2t_lite.decoding.translator import Translator
from t2t_lite.evaluation.scores import Score
from t2t_lite.extras.translate_all import decoder_command, t2t_translate_all
from t2t_lite.extras.translate_all.checkpoint_translations import CheckpointTranslations
from t2t_lite.files import resumable
from t2t_lite.visualization import drawing
from tests.decoding.runs import SENTENCES, TEXT, make_language_model_run, make_run
from tests.integration.conftest import replaced
from tests.training.log_schema import assert_documented

pytestmark = pytest.mark.slow  # it translates by several checkpoints

SOURCE = [*SENTENCES[:5], "", "the red house"]
FLAGS = ("--model_dir=run", "--source=src.en", "--beam_size=2", "--alpha=0.3")
_WRITTEN = ("translations/translate_own-100", "translations/translate_own-settings.json")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The run, and what each checkpoint's translation must be."""
    run = make_run(tmp_path_factory.mktemp("translate_all"), steps=(100, 200))
    (run / "flags.txt").write_text("--train_steps=200\n")
    os.utime(run / "flags.txt", (1_000_000, 1_000_000))
    for step in (100, 200):
        os.utime(run / f"model.ckpt-{step}.index", (1_000_000 + step, 1_000_000 + step))
    expected = {}
    for step in (100, 200):
        translator = Translator.load(str(run / f"model.ckpt-{step}"))
        expected[step] = [found.text for found in translator.translate(SOURCE, beam_size=2, alpha=0.3)]
    assert expected[100] != expected[200]
    return run, expected


@pytest.fixture
def expected(trained, tmp_path):
    """A copy of the run in `run`, the source, and as reference what step 200 translates to."""
    run, expected = trained
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "src.en").write_text("".join(f"{line}\n" for line in SOURCE))
    (tmp_path / "ref.de").write_text("".join(f"{line}\n" for line in expected[200]))
    return expected


def translations(*words):
    """Returns what the command makes of its flags to translate `SOURCE`."""
    flags = _app.Flags()
    t2t_translate_all.define_flags(flags)
    flags.parse(words)
    return CheckpointTranslations(flags.values, SOURCE)


def test_every_checkpoint_is_translated_scored_and_drawn(call_command, expected, tmp_path):
    result = call_command("t2t-translate-all", *FLAGS, "--reference=ref.de", "--metrics=chrf,ter")
    assert result.status == 0, result.stderr
    for step in (100, 200):  # the second one by the model that was built for the first
        path = tmp_path / f"translations/translate_own-{step}"
        assert path.read_text().splitlines() == expected[step]
        assert path.stat().st_mtime == 1_000_000 + step
    flags = tmp_path / "translations/translate_own-flags.txt"
    assert (flags.read_text(), flags.stat().st_mtime) == ("--train_steps=200\n", 1_000_000)
    chrf, ter, titles, first, second, best, plot = result.stdout.splitlines()
    assert chrf.startswith("chrF2: nrefs:1|")
    assert ter.startswith("TER: nrefs:1|")
    assert titles.split() == ["step", "chrF2", "TER"]
    assert first.split()[0] == "100"
    assert second.split() == ["200", "100.00", "0.00"]
    assert best == "best: step 200, chrF2 = 100.00: run/model.ckpt-200"
    assert plot == "plot: translations/translate_own-scores.png"
    assert (tmp_path / "translations/translate_own-scores.png").read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.rglob("*incomplete*"))
    # A smaller TER is the better one; and what is there is not made again.
    os.utime(tmp_path / "translations/translate_own-100", (5e9, 5e9))
    again = call_command("t2t-translate-all", *FLAGS, "--reference=ref.de", "--metrics=ter", "--plot=new/plot.png")
    assert again.stdout.splitlines()[-2:] == ["best: step 200, TER = 0.00: run/model.ckpt-200", "plot: new/plot.png"]
    assert again.stderr.count("already exists") == 2
    assert (tmp_path / "translations/translate_own-100").stat().st_mtime == 5e9
    # t2t-bleu takes the folder as it is.
    os.utime(tmp_path / "translations/translate_own-100", (1e6, 1e6))
    table = call_command("t2t-bleu", "--translations_dir=translations", "--reference=ref.de").stdout
    assert (table.splitlines()[-1].split()[0], table.splitlines()[-1].split()[-1]) == ("200", "100.00")


def test_a_long_line_is_translated_as_by_t2t_decoder(call_command, expected, tmp_path):
    """In parts that are as long as training examples."""
    (tmp_path / "src.en").write_text(f"{' '.join(TEXT.split() * 20)}\nthe red house. A green tree.\n")
    result = call_command("t2t-translate-all", *FLAGS, "--min_steps=200")
    assert "src.en: split, because it is longer than 256 pieces: line 1 (" in result.stderr
    flags = [
        "--output_dir=run",
        "--decode_from_file=src.en",
        "--decode_to_file=out",
        "--decode_hparams=beam_size=2,alpha=0.3",
    ]
    assert call_command("t2t-decoder", *flags).status == 0
    assert (tmp_path / "translations/translate_own-200").read_text() == (tmp_path / "out").read_text()


def test_of_equally_good_checkpoints_the_earliest_is_the_best(tmp_path, capsys, monkeypatch):
    """The table, and the picture's lines, stars and legends."""
    drawn, steps = [], ((3000, 31.0, 39.0), (100, 30.0, 41.5), (200, 31.0, 39.0))
    found = {step: {"bleu": Score(bleu, "nrefs:1"), "chrf": Score(chrf, "nrefs:1")} for step, bleu, chrf in steps}
    monkeypatch.setattr(drawing, "write_picture", lambda path, figure: drawn.append(figure))
    t2t_translate_all._show(types.SimpleNamespace(metrics=["bleu", "chrf"], model_dir="run"), found, "plot.svg")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:6]] == [
        ["step", "sacreBLEU", "chrF2"], ["100", "30.00", "41.50"], ["200", "31.00", "39.00"], ["3000", "31.00", "39.00"]
    ]  # fmt: skip
    assert lines[6:] == ["best: step 200, sacreBLEU = 31.00: run/model.ckpt-200", "plot: plot.svg"]
    first, second = drawn[0].axes
    assert [([*line.get_xdata()], [*line.get_ydata()]) for line in [*first.lines, *second.lines]] == [
        ([100, 200, 3000], [30, 31, 31]), ([200], [31]), ([100, 200, 3000], [41.5, 39, 39]), ([200], [39])
    ]  # fmt: skip
    assert [axes.get_legend().get_texts()[0].get_text() for axes in (first, second)] == [
        "step 200: 31.00",
        "step 200: 39.00",
    ]


def test_a_bleu_is_noted_once_for_each_checkpoint_and_text(tmp_path):
    """What a later process, the exporter of a model card, reads."""
    (tmp_path / "model.ckpt-300.index").touch()
    os.utime(tmp_path / "model.ckpt-300.index", (1_000_003, 1_000_003))
    checkpoint = resumable.StepFile(300, str(tmp_path / "model.ckpt-300"), 1_000_003)
    translation = tmp_path / "None-300"

    def note(source, score):
        noted = translations(f"--model_dir={tmp_path}", f"--source={source}", f"--translations_dir={tmp_path}")
        noted.note(checkpoint, Score(score, "nrefs:1|case:mixed"))

    translation.touch()
    for source, score in (("x/dev.en", 100 / 3), ("y/dev.en", 100 / 3), ("x/other.en", 12.5), ("y/dev.en", 31.25)):
        note(source, score)  # the last text has a name that occurred before, but is another one
    lines = [json.loads(line) for line in (tmp_path / "eval.log").read_text().splitlines()]
    assert_documented(lines)
    fields = ("event", "step", "checkpoint_time", "source", "bleu_signature", "bleu")
    assert [tuple(line[field] for field in fields) for line in lines] == [
        ("translation", 300, 1_000_003, "dev.en", "nrefs:1|case:mixed", 33.3333),
        ("translation", 300, 1_000_003, "other.en", "nrefs:1|case:mixed", 12.5),
        ("translation", 300, 1_000_003, "dev.en", "nrefs:1|case:mixed", 31.25),
    ]  # fmt: skip
    os.utime(tmp_path / "model.ckpt-300.index", (1_000_004, 1_000_004))
    note("dev.en", 31.25)
    assert len((tmp_path / "eval.log").read_text().splitlines()) == 4, "another checkpoint of the same step"
    os.utime(translation, (1_000_000, 1_000_000))
    note("third.en", 50.0)
    assert len((tmp_path / "eval.log").read_text().splitlines()) == 4, "a translation of an earlier run"


def test_a_run_that_replaces_another_translates_with_its_own_settings(expected, tmp_path):
    """Its weights fit the model of the other one."""
    folders = f"--model_dir={tmp_path}/run", f"--translations_dir={tmp_path}/out"
    made, path = translations(*folders, "--source=src.en", "--beam_size=1"), tmp_path / "run/hparams.json"
    config = json.loads(path.read_text())
    for checkpoint in resumable.find(str(tmp_path / "run"), resumable.CHECKPOINTS):
        made.translate(checkpoint)
        config["hparams"]["multiply_embedding_mode"] = "none"
        path.write_text(json.dumps(config))
    translator = Translator.load(str(tmp_path / "run/model.ckpt-200"))
    found = [translation.text for translation in translator.translate(SOURCE, beam_size=1)]
    assert (tmp_path / "out/translate_own-200").read_text().splitlines() == found


@pytest.mark.long
def test_the_card_of_an_exported_average_has_its_bleu(call_command, expected, tmp_path):
    (tmp_path / "other.de").write_text("".join(f"{line} indeed\n" for line in expected[200]))
    averaged = call_command("t2t-avg-all", "--model_dir=run", "--output_dir=avg", "--n=2")
    assert averaged.status == 0, averaged.stderr
    flags = [flag for flag in FLAGS if not flag.startswith("--model_dir")]
    for _ in range(2):  # what is noted is not noted again
        result = call_command("t2t-translate-all", *flags, "--model_dir=avg", "--reference=other.de")
        assert result.status == 0, result.stderr
    lines = [json.loads(line) for line in (tmp_path / "avg/eval.log").read_text().splitlines()]
    assert_documented(lines)
    (line,) = lines
    score = next(row.split()[1] for row in result.stdout.splitlines() if row.split()[:1] == ["200"])
    assert call_command("t2t-exporter", "--output_dir=avg", "--format=hugging_face").status == 0
    card = (tmp_path / "avg/hugging_face/README.md").read_text()
    signature = line["bleu_signature"].replace("|", r"\|")  # in a table
    assert f"| BLEU | {score} ({signature}) on src.en |" in card


def test_a_target_language_without_spaces_has_its_tokenization(eager, call_command, expected, tmp_path):
    """The run's problem says the language; the reference's name does not."""
    path = tmp_path / "run/problem.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"languages": ["en", "zh-Hant-TW"]}))
    (tmp_path / "src.en").write_text("the red house\n")
    for name in ("ref", "translations/translate_own-200"):  # which is not translated again
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("我们今天去学校。\n")
    flags = ["t2t-translate-all", *FLAGS, "--reference=ref", "--min_steps=200"]
    scored, other = call_command(*flags), call_command(*flags, "--tokenization=char")
    assert "|tok:zh|" in scored.stdout and "sacreBLEU = 100.00" in scored.stderr and "|tok:char|" in other.stdout
    flags = ["t2t-decoder", "--output_dir=run", "--decode_from_file=src.en", "--decode_reference=ref"]
    greedy = "--decode_hparams=beam_size=1,extra_length=1"
    decoded = call_command(*flags, "--decode_to_file=out", "--tokenization=char", greedy)
    tuned = call_command(*flags, "--tune=beam_size=1", greedy)
    assert "|tok:char|" in decoded.stderr and "|tok:zh|" in tuned.stdout and "|asian:yes|" in tuned.stdout
    for result in (scored, other, decoded, tuned):
        assert result.status == 0 and "needs spaces" not in result.stderr


def test_a_later_checkpoint_is_waited_for(call_command, expected, tmp_path, monkeypatch):
    later = [path.rename(tmp_path / path.name) for path in (tmp_path / "run").glob("model.ckpt-200.*")]

    def sleep(seconds):
        for path in later:
            path.rename(tmp_path / "run" / path.name)
        later.clear()
        clock[0] += 31

    clock = [0.0]
    monkeypatch.setattr("t2t_lite.files.resumable.time.sleep", sleep)
    monkeypatch.setattr("t2t_lite.files.resumable.time.monotonic", lambda: clock[0])
    result = call_command("t2t-translate-all", *FLAGS, "--wait_minutes=1")
    assert result.stdout.splitlines() == ["translations/translate_own-100", "translations/translate_own-200"]
    assert (tmp_path / "translations/translate_own-200").read_text().splitlines() == expected[200]


def test_a_damaged_checkpoint_is_left_out(call_command, expected, tmp_path):
    (data,) = (tmp_path / "run").glob("model.ckpt-100.data-*")
    data.write_bytes(data.read_bytes()[:100])
    result = call_command("t2t-translate-all", *FLAGS)
    assert (result.status, result.stdout) == (0, "translations/translate_own-200\n")
    assert "warning: step 100 is skipped: run/model.ckpt-100: damaged" in result.stderr
    (data,) = (tmp_path / "run").glob("model.ckpt-200.data-*")
    data.unlink()
    (tmp_path / "translations/translate_own-200").unlink()
    assert call_command("t2t-translate-all", *FLAGS).status == 2


def test_another_command_translates(call_command, expected, tmp_path):
    """Through the shell; file names with blanks are one word."""
    (tmp_path / "my text.en").write_bytes((tmp_path / "src.en").read_bytes())
    script = 'for word; do case "$word" in --decode_to_file=*) to="${word#*=}";; esac; echo "$word" >> words; done'
    (tmp_path / "fake.sh").write_text(f'{script}\ncat "my text.en" > "$to"\n')
    command = "--decoder_command=sh fake.sh {params} | cat"
    folders = ["--data_dir=run", "--t2t_usr_dir="]
    result = call_command(
        "t2t-translate-all", *replaced(FLAGS, "--source=my text.en", command, "--min_steps=200", *folders)
    )
    assert (result.status, result.stdout) == (0, "translations/translate_own-200\n")
    assert (tmp_path / "words").read_text().splitlines() == [
        "--checkpoint_path=run/model.ckpt-200",
        "--decode_from_file=my text.en",
        "--decode_to_file=translations/translate_own-200",
        "--decode_hparams=beam_size=2,alpha=0.3",
        "--data_dir=run",
        "--keep_timestamp",
    ]
    failed = call_command(
        "t2t-translate-all", *replaced(FLAGS, "--source=my text.en", "--decoder_command=exit 3; {params}")
    )
    assert failed.status == 1
    assert "--decoder_command failed with exit status 3: exit 3;" in failed.stderr
    silent = call_command(
        "t2t-translate-all", *replaced(FLAGS, "--source=my text.en", "--decoder_command=true {params}")
    )
    assert "translate_own-100: --decoder_command" in silent.stderr


def test_options_that_nobody_gave_are_left_out(tmp_path):
    folders = {"data_dir": None, "t2t_usr_dir": "my folder"}
    decoder_command.translate(f"echo {{params}} > {tmp_path}/words", "c", "s", "p", {"beam_size": 3}, folders)
    assert (tmp_path / "words").read_text() == (
        "--checkpoint_path=c --decode_from_file=s --decode_to_file=p --decode_hparams=beam_size=3 "
        "--t2t_usr_dir=my folder --keep_timestamp\n"
    )
    decoder_command.translate(f"echo {{params}} > {tmp_path}/words", "c", "s", "p", {"alpha": None}, {})
    assert "decode_hparams" not in (tmp_path / "words").read_text()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--model_dir=run/.."], ["--model_dir=run/..: no checkpoint", "--wait_minutes"]),
        (["--min_steps=201"], ["--model_dir=run: no checkpoint", "step 201"]),
        (["--source=latin.en"], ["latin.en, line 2", "UTF-8"]),
        (["--reference=empty.en"], ["empty.en: the file is empty"]),
        (["--reference=one.de"], ["--reference=one.de has 1 line, but src.en has 7"]),
        (["--problem=translate_ende_wmt32k"], ["--problem=translate_ende_wmt32k", "translate_own"]),
        (["--translations_dir=one.de"], ["one.de"]),
        (["--plot=run"], ["--plot=run", "is a folder"]),
        # What is read is not overwritten.
        *(
            (["--reference=ref.de", f"--plot={plot}"], ["--plot"])
            for plot in ("./src.en", "ref.de", "run/model.ckpt-100.index", *_WRITTEN)
        ),
        (["--source=translations/translate_own-flags.txt"], ["--source", "--translations_dir"]),
        (["--reference=ref.de", "--translations_dir=taken"], ["taken/translate_own-scores.png: is a folder"]),
    ],
)
def test_mistakes_leave_nothing_behind(call_command, assert_user_error, expected, tmp_path, flags, words):
    for name, data in (("latin.en", b"gut\nsch\xf6n\n"), ("empty.en", b""), ("one.de", b"eins\n")):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "taken/translate_own-scores.png").mkdir(parents=True)
    (tmp_path / "translations").mkdir()
    shutil.copy(tmp_path / "src.en", tmp_path / "translations/translate_own-flags.txt")
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert_user_error(call_command("t2t-translate-all", *replaced(FLAGS, *flags)), *words)
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_a_run_that_does_not_translate_is_refused(call_command, assert_user_error, tmp_path):
    run = make_language_model_run(tmp_path)
    (tmp_path / "src.en").write_text("text\n")
    result = call_command("t2t-translate-all", *replaced(FLAGS, f"--model_dir={run}"))
    assert_user_error(result, "language_model. Expected one of sequence_to_sequence")
    assert "skipped" not in result.stderr and not (tmp_path / "translations").exists()


def test_translations_of_something_else_are_not_taken_for_these(call_command, assert_user_error, expected, tmp_path):
    assert call_command("t2t-translate-all", *FLAGS, "--min_steps=200").status == 0
    shutil.copytree(tmp_path / "run", tmp_path / "avg")
    (tmp_path / "other.en").write_text("".join(f"{line}\n" for line in SOURCE[::-1]))  # of as many lines
    for flag, *words in (
        ("--beam_size=1", "beam_size=2, but you requested 1"), ("--alpha=0.6", "alpha=0.3, but you requested 0.6"),
        ("--model_dir=avg", f"model_dir={tmp_path}/run, but you requested {tmp_path}/avg"),
        ("--source=other.en", "source_sha256="),
    ):  # fmt: skip
        another = call_command("t2t-translate-all", *replaced(FLAGS, flag))
        assert_user_error(another, "--translations_dir=translations", "Choose another folder", *words)
    (tmp_path / "translations/translate_own-200").write_text("eine\n")
    result = call_command("t2t-translate-all", *FLAGS, "--min_steps=200")
    assert_user_error(result, "translate_own-200 has 1 line", "src.en has 7", "Delete")


@pytest.mark.skipif(os.geteuid() == 0, reason="for root all folders are writable")
def test_a_folder_without_permission(call_command, assert_user_error, expected, tmp_path):
    (tmp_path / "translations").mkdir(mode=0o500)
    assert_user_error(call_command("t2t-translate-all", *FLAGS), "translations", "no permission")


def test_the_best_of_several_scores():
    """On a tie, chrF decides; then the order."""
    scores = {"bad": (30.0, 40.0), "better": (30.0, 50.0), "same": (30.0, 50.0), "worst": (29.0, 90.0)}
    found = {key: {"bleu": Score(bleu, ""), "chrf": Score(chrf, "")} for key, (bleu, chrf) in scores.items()}
    assert t2t_translate_all.best_of(found) == "better"
    assert t2t_translate_all.best_of({key: {"ter": Score(ter, "")} for key, (_, ter) in scores.items()}) == "bad"
