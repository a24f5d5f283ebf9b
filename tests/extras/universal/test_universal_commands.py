"""A Universal Transformer through the commands: trained, refused with other steps, and decoded with its steps."""

import pytest

from t2t_lite import Translator

SIZES = "hidden_size=16,filter_size=32,num_heads=2,batch_size=256"


@pytest.mark.long
def test_the_commands(call_command, tmp_path):
    words = ["the", "red", "house", "is", "old", "and", "a", "green", "tree", "was", "new"]
    lines = [" ".join(words[i * k % 11] for k in range(1, 3 + i % 7)) for i in range(60)]
    for name in ("text.en", "text.de"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    files = "text.en,text.de"
    data = ["--problem=translate_own", "--data_dir=data", f"--train_files={files}", f"--dev_files={files}"]
    assert call_command("t2t-datagen", *data, "--vocab_size=300").status == 0
    run = [
        "--problem=translate_own", "--data_dir=data", "--output_dir=run", "--model=universal_transformer",
        "--hparams_set=adaptive_universal_transformer_tiny",
    ]  # fmt: skip
    refused = call_command("t2t-trainer", *run, "--hparams=num_encoder_layers=2", "--train_steps=2")
    assert refused.status == 2 and "num_encoder_layers" in refused.stderr
    trained = call_command("t2t-trainer", *run, f"--hparams={SIZES},act_max_steps=3", "--train_steps=4")
    assert trained.status == 0, trained.stderr
    other = call_command("t2t-trainer", *run, f"--hparams={SIZES},act_max_steps=5", "--train_steps=6")
    assert other.status == 2 and "act_max_steps" in other.stderr and "3" in other.stderr and "5" in other.stderr
    (tmp_path / "in").write_text("the red house\n\na tree\n")
    decode = ["--output_dir=run", "--decode_from_file=in", "--decode_to_file=out", "--ponder_file=steps"]
    decoded = call_command("t2t-decoder", *decode, "--decode_hparams=extra_length=2,beam_size=2")
    assert decoded.status == 0, decoded.stderr
    translator = Translator.load(str(tmp_path / "run"))
    found = translator.translate(["the red house", "", "a tree"], beam_size=2, extra_length=2, return_ponder_steps=True)
    lines = (tmp_path / "steps").read_text().split("\n")[:-1]
    assert lines[1] == "" and len(lines) == 3
    for line, translation in zip(lines, found, strict=True):
        if line:
            sides = tuple([*map(int, side.split())] for side in line.split("\t"))
            assert sides == translation.hypotheses[0].ponder_steps
            assert {*sides[0], *sides[1]} <= {1, 2, 3}
