"""No command overwrites what it reads, nor one output with another: refused before anything is opened."""

import os

import pytest

from tests.decoding.runs import SENTENCES, make_run

RUN = "--output_dir=run"
OUT = "--decode_to_file=out"
FAST = "--decode_hparams=beam_size=1,extra_length=3"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A run, its data, texts under several names, and a named pipe nobody has open."""
    monkeypatch.chdir(tmp_path)
    for name in ("in", "ref", "prefixes"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in SENTENCES[:4]))
    (tmp_path / "pairs").write_text("a\tb\n")
    (tmp_path / "translations").mkdir()
    (tmp_path / "translations" / "translate_own-flags.txt").write_text("a\nb\nc\nd\n")
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "hard").hardlink_to(tmp_path / "in")
    for name in ("run", "data"):
        (tmp_path / name).mkdir()
        for file in (made.parent / name).iterdir():
            (tmp_path / name / file.name).write_bytes(file.read_bytes())
    return tmp_path


def contents(folder):
    return {
        os.path.join(where, name): open(os.path.join(where, name), "rb").read()
        for where, _, names in os.walk(folder)
        for name in names
    }


DECODER = {
    "itself": ["--decode_from_file=in", "--decode_to_file=in"],
    "another spelling": ["--decode_from_file=in", "--decode_to_file=./run/../in"],
    "a link": ["--decode_from_file=in", "--decode_to_file=link"],
    "a hard link": ["--decode_from_file=in", "--decode_to_file=hard"],
    "the reference": ["--decode_from_file=in", "--decode_reference=ref", "--decode_to_file=ref"],
    "the prefixes": ["--decode_from_file=in", "--prefix_file=prefixes", "--decode_to_file=prefixes"],
    "alignments over the source": ["--decode_from_file=in", OUT, "--alignments_file=in"],
    "alignments over the reference": ["--decode_from_file=in", "--decode_reference=ref", OUT, "--alignments_file=ref"],
    "two of one name": ["--decode_from_file=in", OUT, "--alignments_file=./out"],
    "two on standard output": ["--decode_from_file=in", "--decode_to_file=-", "--alignments_file=-"],
    "through the other": ["--decode_from_file=in", OUT, "--alignments_file=out.t2t_lite_incomplete"],
    "scores": ["--score_file=pairs", "--decode_to_file=pairs"],
    "json": ["--decode_from_file=in", "--n_best_format=json", "--decode_to_file=in"],
    "a shard": ["--decode_from_file=i", "--decode_to_file=i", "--decode_shards=2"],
    "the weights": ["--decode_from_file=in", "--decode_to_file=run/model.ckpt-100.index"],
    "the settings": ["--decode_from_file=in", OUT, "--alignments_file=run/hparams.json"],
    "the vocabulary": ["--decode_from_file=in", "--decode_to_file=run/VOCABULARY"],
    "passes over records": ["--problem=translate_own", "--data_dir=data", "--alignments_file=a",
                            "--decode_hparams=num_decodes=2,sampling_method=random"],
    "records' inputs": ["--problem=translate_own", "--data_dir=data", "--decode_to_file=x", "--alignments_file="
                        "x.transformer.transformer_tiny.translate_own.beam4.alpha0.6.inputs"],
}  # fmt: skip


@pytest.mark.parametrize("args", DECODER.values(), ids=DECODER)
def test_decoder(folder, call_command, assert_user_error, args):
    vocabulary = next(name for name in os.listdir("run") if name.startswith("vocab") and name.endswith(".model"))
    (folder / "i000").write_text("a\n")
    before = contents(folder)
    result = call_command("t2t-decoder", RUN, *(arg.replace("VOCABULARY", vocabulary) for arg in args))
    words = args[-1] if "two" not in result.stderr else ""
    assert_user_error(result, "overwrite" if "overwrite" in result.stderr else "is the same file as", words[:2])
    assert contents(folder) == before


def test_decoder_from_standard_input(folder, call_command, assert_user_error):
    """`< in` with an output that is in; what the shell opened is compared as well."""
    before = os.dup(0)
    try:
        with open("in") as stdin:
            os.dup2(stdin.fileno(), 0)
        result = call_command("t2t-decoder", RUN, "--decode_to_file=link")
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert_user_error(result, "--decode_to_file=link would overwrite standard input")
    assert (folder / "in").read_text().count("\n") == 4


@pytest.mark.slow
def test_alignments_can_go_to_standard_output(eager, folder, call_command):
    result = call_command("t2t-decoder", RUN, FAST, "--decode_from_file=in", OUT, "--alignments_file=-")
    assert result.status == 0, result.stderr
    assert len(result.stdout.splitlines()) == 4 and "-" not in os.listdir()
    assert (folder / "out").read_text().count("\n") == 4


@pytest.mark.slow
def test_bleu_is_shown_of_what_cannot_be_read_again(eager, folder, call_command):
    result = call_command(
        "t2t-decoder", RUN, FAST, "--decode_from_file=in", "--decode_to_file=/dev/null", "--decode_reference=ref"
    )
    assert result.status == 0 and "BLEU" in result.stderr, result.stderr


OTHERS = {
    "bleu's last step": ["t2t-bleu", "--translations_dir=translations", "--wait_minutes=1", "--event_dir=.",
                         "--reference=last_evaluated_step.txt"],
    "averages over the run": ["t2t-avg-all", "--model_dir=run", "--output_dir=./run/"],
}  # fmt: skip


@pytest.mark.parametrize("args", OTHERS.values(), ids=OTHERS)
def test_other_commands(folder, call_command, assert_user_error, args):
    (folder / "last_evaluated_step.txt").write_text("a\n")
    before = contents(folder)
    assert_user_error(call_command(*args), "--")
    assert contents(folder) == before


def test_a_corpus_in_the_place_of_what_datagen_writes(folder, call_command, assert_user_error):
    for name in ("in.dev", "ref.dev"):
        (folder / name).write_text("Other lines.\n" * 3)
    for name in ("translate_own-train-00000-of-00001", "translate_own-manifest.json", "problem.json",
                 "translate_own-dev-00003-of-00007"):  # fmt: skip
        os.makedirs("new", exist_ok=True)
        (folder / "new" / name).write_bytes((folder / "in").read_bytes())
        before = contents(folder)
        texts = [f"--train_files=new/{name},ref", "--dev_files=in.dev,ref.dev", "--languages=en,de"]
        result = call_command("t2t-datagen", "--problem=translate_own", "--data_dir=new", "--tmp_dir=tmp", *texts)
        is_settings = name == "problem.json"  # which are read first, and are none
        words = ["not readable as JSON"] if is_settings else ["--data_dir=", "would overwrite --train_files="]
        assert_user_error(result, name, *words)
        assert contents(folder) == before
        (folder / "new" / name).unlink()


FOLDERS = {
    "run/eval.log": ["t2t-eval", RUN, "--data_dir=data", "--eval_timeout_mins=0"],
    "run/eval/events.out.tfevents.1": ["t2t-eval", RUN, "--data_dir=data", "--eval_timeout_mins=0"],
    "events/last_evaluated_step.txt": ["t2t-bleu", "--translations_dir=texts", "--reference=ref", "--event_dir=events"],
    "avg/hparams.json": ["t2t-avg-all", "--model_dir=run", "--output_dir=avg", "--n=1"],
    "new/vocab.translate_own.300.model": ["t2t-datagen", "--problem=translate_own", "--data_dir=new",
                                          "--train_files=in,ref2", "--dev_files=dev.en,dev.de", "--languages=en,de",
                                          "--vocab_size=300"],
}  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize("place", FOLDERS)
def test_a_folder_in_the_place_of_an_output(folder, call_command, assert_user_error, place):
    os.makedirs("texts")
    (folder / "texts" / "a-100").write_bytes((folder / "ref").read_bytes())
    for number, name in enumerate(("dev.en", "dev.de", "ref2")):
        (folder / name).write_text(f"Another line {number}.\n" * 4)
    os.makedirs(place)
    before = contents(folder)
    assert_user_error(call_command(*FOLDERS[place]), f"{place}: is a folder", "Expected a file")
    assert contents(folder) == before
