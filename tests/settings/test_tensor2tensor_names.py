"""Everything that tensor2tensor's Transformer sets and commands can be told is taken here, or answered."""

import csv
import pathlib
import pkgutil
import re

import pytest

from t2t_lite import registry
from t2t_lite.bin import t2t_decoder, t2t_exporter, t2t_trainer
from t2t_lite.cli import commands
from t2t_lite.decoding.command.decode_hparams import DecodeHParams, decode_settings
from t2t_lite.errors import UserError
from t2t_lite.settings import tensor2tensor_names
from t2t_lite.settings.config import HParams

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def read_rows(name):
    with open(DOCS / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


# tensor2tensor 1.15.7: basic_1 in layers/common_hparams.py, transformer_base_v1 and the sets derived from it.
THEIR_HPARAMS = [row["name"] for row in read_rows("tensor2tensor_hparams.tsv")]
# The flags of each command: utils/flags.py and bin/t2t_trainer.py, which four commands share; then each one's own.
THEIR_FLAGS = [(c, row["flag"]) for row in read_rows("tensor2tensor_flags.tsv") for c in row["commands"].split()]


def test_the_lists_are_whole():
    assert len(THEIR_HPARAMS) == len({*THEIR_HPARAMS}) == 159
    assert len(THEIR_FLAGS) == len({*THEIR_FLAGS}) == 4 * 73 + 7 + 4 + 17 + 9 + 5 + 13 + 10 + 2 + 2


@pytest.mark.parametrize("name", THEIR_HPARAMS)
def test_hyperparameters(name):
    if name in HParams():
        return
    answer = tensor2tensor_names.hparam_answer(name)
    assert answer.endswith(".") and "`" not in answer
    with pytest.raises(UserError, match=re.escape(f"--hparams: '{name}' is not a hyperparameter. {answer}")):
        registry.hparams("transformer_base").parse(f"{name}=1")
    with pytest.raises(UserError, match=re.escape(answer)):
        registry.hparams("transformer_base").set_hparam(name, 1)


def test_the_tables_name_nothing_that_is_here():
    named = [name for names, _, _ in tensor2tensor_names.HPARAMS for name in names.split()]
    assert not [name for name in named if name in HParams()]
    assert len({*named}) == len(named)
    assert {*tensor2tensor_names.DECODING} <= {*decode_settings()}


@pytest.mark.whole
@pytest.mark.parametrize(("command", "name"), THEIR_FLAGS)
def test_flags(command, name, capsys):
    if f"t2t-{command.replace('_', '-')}" not in commands.paths():
        pytest.skip("of an extra that is not here")
    module = commands.module(f"t2t-{command.replace('_', '-')}")
    flags = commands.flags_of(module)
    if name.replace("-", "_") in flags:
        return
    assert module.main([f"--{name}=1"]) == 2
    error = capsys.readouterr().err
    assert f"--{name}: unknown flag. " in error and "Nearest" not in error and error.endswith(".\n")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("command", "word", "answer"),
    [
        (t2t_decoder, "--beam_size=4", "--decode_hparams=beam_size=VALUE"),
        (t2t_decoder, "--decode_beam_size=4", "--decode_hparams=beam_size=VALUE"),
        (t2t_decoder, "--decode-alpha=1", "--decode_hparams=alpha=VALUE"),
        (t2t_trainer, "--decode_extra_length=9", "--decode_hparams=extra_length=VALUE"),
        (t2t_exporter, "--beam_size=4", "--decode_hparams=beam_size=VALUE"),
        (t2t_trainer, "--batch_size=9", "--hparams=batch_size=VALUE"),
        (t2t_trainer, "--num_heads=9", "--hparams=num_heads=VALUE"),
        (t2t_trainer, "--learning_rate=1", "Set learning_rate_constant to 10 times"),
        (t2t_trainer, "--dropout=0.1", "layer_prepostprocess_dropout"),
        (t2t_trainer, "--problems=a", "use --problem."),
        (t2t_trainer, "--hparams_overrides=a=1", "--hparams=name=value"),
        (t2t_trainer, "--checkpoint_path=a", ", t2t-decoder, "),
        (t2t_decoder, "--train_steps=9", ", t2t-trainer; "),
        (t2t_decoder, "--checkpoint_pth=a", "Nearest: --checkpoint_path"),
        (t2t_decoder, "checkpoint_path=a", "Nearest: --checkpoint_path"),
    ],
)
def test_flags_that_are_set_elsewhere(command, word, answer, capsys):
    assert command.main([word]) == 2
    error = capsys.readouterr().err
    assert answer in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("decode_beam_size=4", "Use beam_size instead."),
        ("decode_to_file=x", "It is a flag: --decode_to_file=FILE."),
        ("num_heads=4", "--hparams=num_heads=VALUE"),
        ("learning_rate=4", "learning_rate_constant"),
    ],
)
def test_settings_of_decoding(text, answer):
    with pytest.raises(UserError, match=re.escape(answer)):
        DecodeHParams.parse(text)


@pytest.mark.parametrize(
    ("text", "answer"), [("beam_size=4", "--decode_hparams=beam_size"), ("train_steps=4", "--train_steps=")]
)
def test_hyperparameters_that_are_set_elsewhere(text, answer):
    with pytest.raises(UserError, match=answer):
        HParams().parse(text)


@pytest.mark.whole
def test_imports_beside_the_old_ones_work():
    page = (pathlib.Path(__file__).parents[2] / "docs/coming_from_tensor2tensor.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(from tensor2tensor\.[^`]*)` \| `([^`]*)` \|$", page, re.MULTILINE)
    dotted = re.findall(r"^\| `[\w.]+` \| `(t2t_lite\.[\w.]+)` \|$", page, re.MULTILINE)
    assert len(rows) >= 17 and len(dotted) >= 8
    for _, new in rows:
        assert "t2t_lite" in new
        exec(new, {})
    for new in dotted:
        pkgutil.resolve_name(new)
    old = " ".join(old for old, _ in rows)
    for module in ("utils import registry", "data_generators import problem", "data_generators import text_problems",
                   "common_hparams", "models import transformer", "utils.hparam ", "utils import metrics"):  # fmt: skip
        assert module in old


@pytest.mark.parametrize(("steps", "accumulation", "batches"), [(0, 1, 1), (0, 3, 3), (1, 3, 3), (4, 1, 4), (4, 4, 4)])
def test_multistep_adam_is_adam_with_accumulation(steps, accumulation, batches):
    given = HParams().parse(
        f"optimizer=multistep_adam,optimizer_multistep_accumulate_steps={steps},"
        f"gradient_accumulation_steps={accumulation}"
    )
    made = tensor2tensor_names.without_multistep(given)
    expected = {"optimizer": "adam", "gradient_accumulation_steps": batches, "optimizer_multistep_accumulate_steps": 0}
    assert made == HParams().override_from_dict(expected)
    other = HParams().parse("optimizer_multistep_accumulate_steps=4,gradient_accumulation_steps=3")
    assert tensor2tensor_names.without_multistep(other) is other
    with pytest.raises(UserError, match=r"accumulate_steps=4, gradient_accumulation_steps=3: "):
        tensor2tensor_names.without_multistep(other.parse("optimizer=multistep_adam"))
