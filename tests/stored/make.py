"""Makes the stored models of this version, <version>.tar.xz: python -m tests.stored.make, once, before its release.

What released versions have stored is never made again: test_stored_models.py shows that later ones open it. --check
says what the archive of this version lacks: kinds of models, or families of Hugging Face's.
"""

import contextlib
import json
import os
import pathlib
import sys
import tarfile
import tempfile

import t2t_lite
from t2t_lite.bin import t2t_datagen, t2t_exporter, t2t_trainer
from tests.decoding.runs import SENTENCES
from tests.stored import small_models

# Small, and trained until what it answers depends on the text.
HPARAMS = (
    "num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2,batch_size=256,learning_rate_warmup_steps=50,"
    "learning_rate_constant=1"
)
TEXT, TARGET = "the red house is old.", "der rote Haus ist alt."


def call(command, *words):
    """Calls a command, which must succeed."""
    if status := command.main(list(words)):
        sys.exit(f"{command.__name__} {words}: exit status {status}")


def make():
    """Writes records, a run, its model as .keras, its exports, and small models; returns what they answer.

    They go into the folder one is in.
    """
    for name in ("a.en", "a.de"):
        pathlib.Path(name).write_text("".join(f"{sentence}\n" for sentence in SENTENCES), encoding="utf-8")
    files = ["--train_files=a.en,a.de", "--dev_files=a.en,a.de"]
    call(t2t_datagen, "--problem=translate_own", "--data_dir=data", "--vocab_size=330", *files)
    settings = ["--hparams_set=transformer_tiny", f"--hparams={HPARAMS}", "--train_steps=150", "--random_seed=1"]
    call(t2t_trainer, "--problem=translate_own", "--data_dir=data", "--output_dir=run", *settings)
    call(t2t_exporter, "--output_dir=run", "--export_dir=export", "--decode_hparams=beam_size=2,extra_length=5")
    call(t2t_exporter, "--output_dir=run", "--export_dir=hugging_face", "--format=hugging_face")
    translator = t2t_lite.load("run")
    translator.model.save("model.keras")
    (answer,) = translator.translate([TEXT], beam_size=2, extra_length=5)
    (score,) = translator.score([TEXT], [TARGET])
    expected = {"text": TEXT, "translation": answer.text, "target": TARGET, "log_prob": float(score.log_prob)}
    expected["small"] = small_models.make_all()
    pathlib.Path("expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1), encoding="utf-8")
    return expected


def _anonymous(member):
    """Returns a member of the archive without its owner; None for what is for TensorBoard, and for copies."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return None if "events.out" in member.name or member.name == "run/best" else member


def check(archive):
    """Returns what the archive of this version lacks, list of str."""
    if not archive.exists():
        return ["everything, for it is not there"]
    with tarfile.open(archive) as file:
        return small_models.lacking({*json.load(file.extractfile("expected.json")).get("small", {})})


if __name__ == "__main__":
    archive = pathlib.Path(__file__).resolve().parent / f"{t2t_lite.__version__}.tar.xz"
    if "--check" in sys.argv:
        lacking = check(archive)
        sys.exit(f"{archive.name}: lacks {', '.join(lacking)}: tests/stored/small_models.py" if lacking else 0)
    if archive.exists():
        sys.exit(f"{archive} is there. The models of a version are stored once.")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        expected = make()
        with tarfile.open(archive, "w:xz") as file:
            small = [f"{name}{ending}" for name in expected["small"] for ending in ("", ".keras", ".hugging_face")]
            names = "data", "run", "export", "hugging_face", "model.keras", *small, "expected.json"
            for name in filter(os.path.exists, names):
                file.add(name, filter=_anonymous)
