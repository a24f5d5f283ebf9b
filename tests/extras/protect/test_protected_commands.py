"""New URLs and placeholders come through a model that was trained on others: commands, Python and an export."""

import random
import re

import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from t2t_lite.extras.protect.protected_texts import ProtectedTexts

NOUNS = [("house", "Haus"), ("book", "Buch"), ("picture", "Bild"), ("car", "Auto"), ("child", "Kind"), ("word", "Wort")]
KINDS = ["old alt", "new neu", "small klein", "big groß", "red rot"]
PATTERNS = [
    ("see {u} .", "siehe {u} ."),
    ("the {n} at {u} is {k} .", "das {n} bei {u} ist {k} ."),
    ("today {p} saw the {n} .", "heute sah {p} das {n} ."),
    ("{p} wrote to {q} about {u} .", "{p} schrieb {q} über {u} ."),
    ("when {p} came, {q} was {k} .", "{q} war {k}, als {p} kam ."),
    ("the {n} is {k} .", "das {n} ist {k} ."),
]
PROTECTED = ProtectedTexts(["urls", "placeholders"])


def pairs(count, seed):
    draw = random.Random(seed)

    def word():
        return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randrange(2, 8)))

    for _ in range(count):
        noun, kind = draw.choice(NOUNS), draw.choice(KINDS).split()
        placeholders = [f"{{{word()}}}", f"${{{word()}.{word()}}}"]
        url = f"https://{word()}.org/{word()}?{word()}={word()}"
        both = dict(zip("pqu", [*placeholders, url], strict=True))
        sides = [{"n": noun[side], "k": kind[side], **both} for side in (0, 1)]
        yield [pattern.format(**side) for pattern, side in zip(draw.choice(PATTERNS), sides, strict=True)]


def texts_of(text):
    return sorted(found for _, found in PROTECTED.hide(text).texts)


@pytest.mark.long
def test_new_protected_texts_come_through(call_command, run_command, tmp_path):
    for name, count in (("train", 4000), ("dev", 60), ("test", 100)):
        for side, lines in zip(("en", "de"), zip(*pairs(count, name), strict=True), strict=True):
            (tmp_path / f"{name}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = run_command(
        "t2t-datagen", "--problem=translate_own", "--train_files=train.en,train.de", "--dev_files=dev.en,dev.de",
        "--vocab_size=380", "--protect=urls,placeholders", "--data_dir=data",
    )  # fmt: skip
    assert "0 were kept" in result.stderr
    result = run_command(
        "t2t-trainer", "--problem=translate_own", "--model=transformer", "--hparams_set=transformer_tiny",
        "--data_dir=data", "--output_dir=run", "--train_steps=500", "--local_eval_frequency=500",
        "--hparams=batch_size=1024,learning_rate_warmup_steps=200,layer_prepostprocess_dropout=0.0",
    )  # fmt: skip
    assert result.status == 0, result.stderr
    result = run_command(
        "t2t-decoder", "--output_dir=run", "--decode_from_file=test.en", "--decode_to_file=out.de",
        "--decode_reference=test.de",
    )  # fmt: skip
    sources, outputs = ((tmp_path / name).read_text("utf-8").splitlines() for name in ("test.en", "out.de"))
    assert list(map(texts_of, outputs)) == list(map(texts_of, sources)), "each as often as in its line"
    lost = re.findall(r"\d+ \([^)]*\)", result.stderr)
    assert len(lost) < 10, "the model learned to write the symbols"
    assert float(re.search(r"sacreBLEU = ([\d.]+)", result.stderr)[1]) > 60
    result = call_command("t2t-exporter", "--output_dir=run", "--export_dir=export")
    assert result.status == 0, result.stderr
    found = Translator.load(str(tmp_path / "run")).translate(sources)
    assert [one.text for one in found] == outputs
    serve = tf.saved_model.load(str(tmp_path / "export/1")).signatures["serving_default"]
    assert [text.decode() for text in serve(inputs=tf.constant(sources))["outputs"].numpy()] == outputs
    card = (tmp_path / "export/1/README.md").read_text("utf-8")
    assert "| unchanged in outputs | urls, placeholders |" in card
