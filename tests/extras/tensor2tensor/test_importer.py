"""t2t-importer of a model of tensor2tensor, and the commands on what it made: decode, fine-tune, export."""

# Nearest tests of: extras/tensor2tensor/in_t2t_importer.py, extras/tensor2tensor/sources.py

import json

import pytest
import tensorflow as tf

from t2t_lite.bin import t2t_importer
from t2t_lite.decoding.translator import Translator
from tests.export.old_models import WORDS, OldModel


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a run of tensor2tensor, `old`, and what the importer made of it, `new`."""
    folder = tmp_path_factory.mktemp("importer")
    OldModel(hidden=16, filter=32, heads=2, layers=1, shards=4).write(folder / "old")
    vocabulary = folder / "old" / "vocab.subwords"
    flags = ["--from=tensor2tensor", f"--path={folder}/old", f"--vocab={vocabulary}", "--languages=en,de"]
    assert t2t_importer.main([*flags, f"--output_dir={folder}/new"]) == 0
    return folder


def test_what_it_writes(made):
    assert sorted(path.name.split(".")[0] for path in (made / "new").iterdir()) == [
        "checkpoint", "hparams", "model", "model", "problem", "vocab",
    ]  # fmt: skip
    assert str(made) not in (made / "new" / "checkpoint").read_text(), "the folder can be moved"
    assert json.loads((made / "new" / "hparams.json").read_text())["hparams"]["use_target_space_embedding"] is True


@pytest.mark.long
def test_exporter(made, call_command):
    """Text in, text out, by subwords that are cut and joined in the graph."""
    exported = call_command("t2t-exporter", f"--output_dir={made}/new", "--decode_hparams=beam_size=2,extra_length=4")
    assert exported.status == 0, exported
    serve = tf.saved_model.load(exported.stdout.strip()).signatures["serving_default"]
    texts = ["the red house .", "Haus_1 \\ ☃  neu", "", "der\n\u2028 \u05d0 e\u0301", "x" * 90]
    expected = Translator.load(str(made / "new")).translate(texts, beam_size=2, extra_length=4)
    found = serve(inputs=tf.constant(texts))["outputs"].numpy()
    assert [text.decode() for text in found] == [t.text for t in expected] and len({*found}) > 2


@pytest.mark.long  # a story of what tests/runs and tests/training/test_warm_start.py hold
def test_fine_tuning(made, call_command, tmp_path):
    lines = "".join(f"{' '.join(WORDS[i % 7 : i % 7 + 3])}\n" for i in range(40))
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text(lines)
    data = call_command(
        "t2t-datagen", "--problem=translate_own", "--data_dir=data", "--train_files=a.en,a.de", "--dev_files=a.en,a.de",
        f"--vocab_from={made}/new",
    )  # fmt: skip
    assert data.status == 0, data
    train = ["t2t-trainer", "--problem=translate_own", "--data_dir=data", "--schedule=train"]
    small = "--hparams=batch_size=256"
    in_place = call_command(*train, f"--output_dir={made}/new", "--train_steps=250002", small, "--allow_hparams_change")
    assert_user_error_last(in_place, "--warm_start_from", "another --output_dir")
    tuned = call_command(*train, "--output_dir=tuned", f"--warm_start_from={made}/new", small, "--train_steps=2")
    assert tuned.status == 0, tuned
    assert "starting with the weights of" in tuned.stderr
    config = json.loads((tmp_path / "tuned" / "hparams.json").read_text())
    assert config["hparams"]["hidden_size"] == 16 and config["hparams"]["position_layout"] == "tensor2tensor"
    translator = Translator.load(str(tmp_path / "tuned"))
    assert translator.run.step == 2 and translator.read("the red house").ids


def assert_user_error_last(result, *words):
    """As `assert_user_error`, where there was progress before."""
    assert result.status == 2, result
    last = result.stderr.strip().splitlines()[-1]
    assert "error: " in last and all(word in last for word in words), last


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--from=fairseq"], ["--from", "tensor2tensor"]),
        (["--from=hugging_face"], ["--vocab cannot be used with --from=hugging_face, only with --from=tensor2tensor"]),
        (["--path=nowhere"], ["nowhere"]),
        (["--vocab=nowhere.subwords"], ["nowhere.subwords", "no such file"]),
        (["--vocab=old/hparams.json"], ["old/hparams.json", "not a .subwords file"]),
        (["--vocab="], ["missing --vocab"]),
        (["--vocab=a,b,c"], ["--vocab", "3 files"]),
        (["--languages=english"], ["--languages=english", "two different codes"]),
        (["--hparams=num_heads=3"], ["num_heads=3"]),
        (["--hparams=hidden=8"], ["'hidden'"]),
        (["--hparams_set=transformer_huge"], ["transformer_huge"]),
        (["--output_dir=old"], ["old: already contains files", "new folder"]),
        (["--problem=tag_own"], ["--problem cannot be used with --from=tensor2tensor", "Remove it"]),
    ],
)
def test_mistakes(made, call_command, assert_user_error, tmp_path, flags, words):
    (tmp_path / "old").symlink_to(made / "old")
    usual = ["--from=tensor2tensor", "--path=old", "--vocab=old/vocab.subwords", "--languages=en,de", "--output_dir=x"]
    args = {flag.split("=")[0]: flag for flag in [*usual, *flags]}
    assert_user_error(call_command("t2t-importer", *args.values()), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
