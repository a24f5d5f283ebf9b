"""The user's own MIDI files: events, records, training and what t2t-decoder reads and writes of them."""

import pytest

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.extras.images.png_files import read_png
from t2t_lite.extras.music.midi_events import midi_bytes, read_midi, wav_bytes
from t2t_lite.extras.music.performance_encoder import PerformanceEncoder
from t2t_lite.settings.config import HParams
from tests.data.stored import read_examples
from tests.decoding.runs import make_problem_run
from tests.extras.music.music import melody, midi
from tests.extras.own_problems import check_bad_files
from tests.problems import own

ENCODER = PerformanceEncoder()


def write_music(folder, seeds, **options):
    folder.mkdir(parents=True)
    for seed in seeds:
        (folder / f"{seed}.mid").write_bytes(midi_bytes(melody(seed, **options)))
    return str(folder)


def arguments(tmp_path):
    """Those of `configure`, of three pieces and two."""
    folders = {"train_files": [write_music(tmp_path / "train", range(3))]}
    return folders | {"dev_files": [write_music(tmp_path / "dev", range(3, 5))], "sequence_length": 48}


def test_pieces_come_back_from_rows_and_their_notes_are_counted(tmp_path):
    own.generated("music_own", tmp_path / "data", **arguments(tmp_path))
    records = Records(registry.problem("music_own"), str(tmp_path / "data"), "eval")
    rows = [row["targets"] for row in read_examples(records.paths)]
    pieces = [ENCODER.encode_notes(read_midi(str(tmp_path / "dev" / f"{seed}.mid"))) for seed in (3, 4)]
    assert [i for row in rows for i in row] == [*pieces[0], 1, *pieces[1], 1]
    assert records.unit_counts() == {"id": sum(map(len, rows)), "note": 60} and max(map(len, rows)) == 48


@pytest.mark.slow
def test_rows_are_transposed_in_training_alone_and_stay_on_the_keyboard(tmp_path):
    highest = write_music(tmp_path / "high", [9], lowest=107, highest=108, count=40)
    problem = own.generated("music_own", tmp_path / "data", **arguments(tmp_path) | {"train_files": [highest]})
    hparams = HParams(batch_size=480, learning_rate_warmup_steps=1)
    train, dev = (Records(problem, str(tmp_path / "data"), split).paths for split in ("train", "eval"))
    known = {tuple(row["targets"]) for row in read_examples(train)}
    shifts = set()
    for batch in batching.training_batches(problem, hparams, train).take(8):
        for row in batch["targets"].numpy().tolist():
            row = [i for i in row if i]
            moved = [k for k in range(-3, 4) if tuple(i - k if 2 <= i < 178 else i for i in row) in known]
            assert moved, "a row is one of the records, transposed as a whole"
            shifts |= {*moved}
    assert {-3, -2, -1, 0} <= shifts and max(shifts) <= 1
    evaluated = batching.evaluation_batches(problem, hparams, dev)
    rows = [tuple(i for i in row if i) for batch in evaluated for row in batch["targets"].numpy().tolist()]
    assert {*rows} == {tuple(row["targets"]) for row in read_examples(dev)}


ON = b"\x00\x90\x3c\x40"
BAD = {  # of a file and of its notes; others: test_midi_events.py
    "too low": (midi(b"\x00\x90\x14\x40\x60\x80\x14\x40"), r"9\.mid: .*pitch 20 "),
    "silence": (midi(b"\xbf\xff\x7f\x90\x3c\x40\x60\x80\x3c\x40"), r"9\.mid: .* 1,092 s"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_are_named_and_may_be_skipped(kind, tmp_path):
    given, (content, message) = arguments(tmp_path), BAD[kind]
    (tmp_path / "dev" / "9.mid").write_bytes(content)
    records = check_bad_files(own.configured("music_own", **given), message, tmp_path / "data")
    assert records.unit_counts()["note"] == 60


def test_notes_without_an_end_are_told_once_for_each_file(tmp_path, caplog):
    given = arguments(tmp_path)
    for number in range(7):
        (tmp_path / "dev" / f"9{number}.mid").write_bytes(midi(ON))
    problem = own.generated("music_own", tmp_path / "data", **given)
    assert Records(problem, str(tmp_path / "data"), "eval").unit_counts()["note"] == 60 + 7
    *told, last = [message for message in caplog.messages if "MIDI" in message or "without an end" in message]
    assert [message.split(":")[0] for message in told] == [f"{tmp_path}/dev/9{number}.mid" for number in range(5)]
    assert "further warnings" in last


def test_what_is_written_of_outputs(tmp_path):
    """Two inputs, of which the first has two outputs."""
    primer, more, other = (
        ENCODER.encode(names) for names in ("on60 shift50 off60", "on61 shift25 off61", "on64 shift75")
    )
    answers = [(primer, [more, other]), ("on64 shift75", [[]])]
    pieces = [ENCODER.decode_notes(ids) for ids in ([*primer, *more], [*primer, *other], other)]
    encoders, problem = {"targets": ENCODER}, registry.problem("music_own")
    for ending, count in (("mid", 3), ("midi", 3), ("wav", 3)):
        written = problem.writers[ending](f"x/out.{ending}", answers, encoders)
        assert [*written][:count] == [f"x/out-{number}.{ending}" for number in (1, 2, 3)]
        assert [*written.values()][:3] == [*map(wav_bytes if ending == "wav" else midi_bytes, pieces)]
        assert [*written][3:] == ([] if ending == "wav" else ["x/out.png"])
    assert [*problem.writers["wav"]("out.wav", answers[1:], encoders)] == ["out.wav"]
    for ending in problem.writers:
        with pytest.raises(UserError, match=rf"out\.{ending}.*inputs"):
            problem.writers[ending](f"out.{ending}", [], encoders)
    (tmp_path / "a.png").write_bytes(problem.writers["png"]("a.png", answers[:1], encoders)["a.png"])
    roll = read_png(str(tmp_path / "a.png"))
    assert roll.shape == (2 * (88 * 4 + 8), 1 + int(1.25 * 24), 3), "24 pixels a second, 4 a pitch, 4 above and below"
    first = roll[4 : 4 + 88 * 4 : 4]  # a row for each pitch, the highest first
    white, black = [255] * 3, [239] * 3  # keys
    assert [first[108 - pitch, 2].tolist() for pitch in (59, 61, 62, 63, 64)] == [white, black, white, black, white]
    assert (first[:, 12] == 128).sum() == 3 * 87, "a line at the primer's end, behind the note that begins there"
    colors = [
        {*map(tuple, first[108 - pitch, :18].tolist())} - {(255,) * 3, (239,) * 3, (128,) * 3} for pitch in (60, 61, 64)
    ]
    assert [len(found) for found in colors] == [1, 1, 0] and colors[0] == colors[1]
    assert (first[108 - 60, :12] != 255).any(-1).all() and (first[108 - 60, 13:] == 255).all()


@pytest.mark.slow
def test_the_decoder_continues_a_primer_and_draws_it(eager, call_command, tmp_path):
    problem = own.configured("music_own", **arguments(tmp_path / "own"))
    run = make_problem_run(problem, "transformer_lm", tmp_path / "own")
    primer = melody(7, count=4)
    (tmp_path / "primer.mid").write_bytes(midi_bytes(primer))
    flags = ["--decode_from_file=primer.mid", "--decode_to_file=out.mid"]
    flags += ["--decode_hparams=num_samples=2,extra_length=9"]
    result = call_command("t2t-decoder", f"--output_dir={run}", *flags)
    assert result.status == 0 and "generating: 1 of 1 piece, " in result.stderr
    kept = ENCODER.decode_notes(ENCODER.encode_notes(primer))
    for number in (1, 2):
        found = read_midi(str(tmp_path / f"out-{number}.mid"))
        for note in kept:
            assert any(abs(note.start - one.start) < 0.005 and note.pitch == one.pitch for one in found)
    picture = read_png(str(tmp_path / "out.png"))
    assert picture.shape[0] == 2 * (88 * 4 + 8)
