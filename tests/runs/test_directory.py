"""What a resumed run may have other than before; one trainer per folder."""

import os
import sys

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.runs.directory import (
    STREAM,
    accumulation_for,
    changed_hparams,
    check_known,
    check_names,
    check_places,
    check_unchanged,
    fill_in_settings,
    locked,
    run_hparams,
    warn_of_problem,
)
from t2t_lite.runs.run_config import write_run_config
from t2t_lite.settings.config import HParams
from tests.models.own_model import OwnModel
from tests.runs.configs import CONFIG


def config(replicas, accumulation):
    hparams = registry.hparams("transformer_tiny").parse(f"gradient_accumulation_steps={accumulation}").values()
    of_run = {
        "batches_a_step": replicas * accumulation,
        "xla_compile": False,
        "xla_shapes": 16,
        "records_sha256": "one",
    }
    return CONFIG | of_run | {"hparams": hparams}


@pytest.mark.parametrize(
    "before, replicas, wanted, kept",
    [
        ((8, 1), 8, 1, 1),
        ((8, 1), 2, 1, 4),
        ((2, 6), 3, 6, 4),
        ((8, 1), 1, 1, 8),
        ((8, 1), 2, 3, 3),  # another number was asked for
    ],
)
def test_the_accumulation_that_keeps_the_batches(before, replicas, wanted, kept):
    assert accumulation_for(replicas, wanted, config(*before)) == kept
    assert accumulation_for(replicas, wanted, config(*before), keep_batches=False) == wanted
    assert accumulation_for(replicas, wanted, None) == wanted


def test_replicas_that_cannot_share_the_batches():
    words = r"^5 replicas cannot equally share .*, 12 in .* Expected .*: 1, 2, 3, 4, 6, 12\."
    with pytest.raises(UserError, match=f"{words}.*--hparams=gradient_accumulation_steps=6 --allow_hparams_change$"):
        accumulation_for(5, 6, config(2, 6))


def of(**facts):
    return config(1, 1) | facts


XLA = {"xla_compile": True}
CHANGES = {  # {what: (the run's settings, those asked for, what is said unless it is allowed, the change)}
    "replicas that take the same batches": (config(8, 1), config(2, 4), None, {}),
    "accumulation": (
        config(8, 1), config(2, 3), r"gradient_accumulation_steps: 1 -> 3, batches_a_step: 8 -> 6\.",
        {"gradient_accumulation_steps": [1, 3], "batches_a_step": [8, 6]},
    ),
    "replicas": (config(8, 1), config(2, 1), r"batches_a_step: 8 -> 2\.", {"batches_a_step": [8, 2]}),
    "other records": (
        of(), of(records_sha256="other"), "training records in --data_dir differ",
        {"records_sha256": ["one", "other"]},
    ),
    "a compiler": (of(), of(**XLA), r"xla_compile: False -> True\.", {"xla_compile": [False, True]}),
    "shapes": (of(**XLA), of(**XLA | {"xla_shapes": 3}), r"xla_shapes: 16 -> 3\.", {"xla_shapes": [16, 3]}),
    "shapes of what is not compiled": (of(), of(xla_shapes=3), None, {}),
    "a set of equal values": (
        of(), of(hparams_set="theirs"), r"hparams_set: transformer_tiny -> theirs\.",
        {"hparams_set": ["transformer_tiny", "theirs"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_what_changes_only_when_allowed(tmp_path, what):
    before, after, words, change = CHANGES[what]
    write_run_config(str(tmp_path), before)
    if words:
        said = rf"^{tmp_path}: .*{words}.* --allow_hparams_change.* another output_dir"
        with pytest.raises(UserError, match=said):
            changed_hparams(str(tmp_path), after, allow_change=False)
    else:
        assert changed_hparams(str(tmp_path), after, allow_change=False) == {}
    assert changed_hparams(str(tmp_path), after, allow_change=True) == change
    assert changed_hparams(str(tmp_path / "new"), after, allow_change=False) == {}


@pytest.mark.parametrize("key", ["problem", "model", "vocab_size", "target_vocab_size", "vocabulary_sha256"])
def test_what_the_weights_belong_to_cannot_change(tmp_path, key):
    """Not even when hyperparameters may."""
    write_run_config(str(tmp_path), config(1, 1))
    other = {"vocab_size": 11, "target_vocab_size": 12, "vocabulary_sha256": {"inputs": "00"}}.get(key, "other")
    said = f"the vocabulary in --data_dir differs .*copy {tmp_path}/vocab"
    said = said if "vocab" in key else f"trained with {key}=.*, but this run has "
    with pytest.raises(UserError, match=said):
        changed_hparams(str(tmp_path), config(1, 1) | {key: other}, allow_change=True)


# Of a model, an optimizer and LoRA; tests/settings/test_declared_hparams.py has all settings of models.
FIXED = (
    "hidden_size=32", "optimizer=adafactor", "optimizer_adafactor_beta1=0.5", "optimizer_adafactor_factored=False",
    "ema_decay=0.9", "lora_rank=4", "frozen=embedding",
)  # fmt: skip


@pytest.mark.parametrize("change", FIXED)
def test_what_a_checkpoint_holds_cannot_change(tmp_path, change):
    name = change.split("=")[0]
    before, after = config(1, 1), config(1, 1)
    after["hparams"] = HParams.from_dict(before["hparams"]).parse(change).values()
    assert after["hparams"] != before["hparams"]
    write_run_config(str(tmp_path), before)
    with pytest.raises(UserError, match=rf"{name}: .* -> .*{name} cannot change during a run"):
        changed_hparams(str(tmp_path), after, allow_change=True)


@pytest.mark.parametrize(
    "change, begins_anew",
    [
        ("batch_size=77", True), ("max_length=77", True), ("min_length=7", True), ("bpe_dropout=0.2", True),
        ("random_seed=7", True), ("label_smoothing=0.2", False), ("learning_rate_constant=0.5", False),
        ("layer_prepostprocess_dropout=0.3", False), ("eval_beam_size=2", False), ("clip_grad_norm=2", False),
    ],
)  # fmt: skip
def test_what_else_may_change_and_whether_the_data_begin_anew(tmp_path, change, begins_anew):
    name = change.split("=")[0]
    before, after = config(1, 1), config(1, 1)
    after["hparams"] = HParams.from_dict(before["hparams"]).parse(change).values()
    write_run_config(str(tmp_path), before)
    assert list(changed_hparams(str(tmp_path), after, allow_change=True)) == [name]
    assert (name in STREAM) == begins_anew


def test_what_was_not_given_is_the_earlier_runs(tmp_path):
    write_run_config(str(tmp_path), config(1, 3) | {"model": OwnModel.REGISTERED_NAME})
    problem, model, hparams, hparams_set = fill_in_settings(str(tmp_path), None, None, None, None)
    assert (problem, model, hparams_set) == ("algorithmic_identity_decimal40", "own_model", "transformer_tiny")
    assert hparams.gradient_accumulation_steps == 3
    own = HParams(hidden_size=24)
    assert fill_in_settings(str(tmp_path), "q", "other", own, "their_set") == ("q", "other", own, "their_set")
    new = str(tmp_path / "new")
    for name in (None, "their_set"):  # of hyperparameters that are given, it need not be registered
        assert fill_in_settings(new, "algorithmic_identity_decimal40", None, own, name)[1] == "transformer"
    for settings in ((None, None, own, None), ("q", None, None, None)):
        with pytest.raises(UserError, match="a new run needs a problem and an hparams_set"):
            fill_in_settings(new, *settings)


def test_the_name_of_the_set_stands_for_what_the_run_has(tmp_path):
    own = "batch_size=77,num_heads=2"
    before = config(1, 1) | {"hparams": registry.hparams("transformer_tiny").parse(own).values()}
    write_run_config(str(tmp_path), before)
    made = HParams.from_dict(before["hparams"])
    for hparams_set in (None, "", "transformer_tiny"):
        for changes in ("", "batch_size=77", own):
            assert run_hparams(before, hparams_set, changes) == made
        assert run_hparams(before, hparams_set, "batch_size=78") == made.parse("batch_size=78")
    assert fill_in_settings(str(tmp_path), None, None, None, "transformer_tiny")[2] == made
    assert run_hparams(before, "transformer_small") == registry.hparams("transformer_small")
    assert run_hparams({}, "transformer_tiny", own) == made


@pytest.mark.parametrize(
    "hparams_set, model, owner, name",
    [
        ("gpt2_small", "transformer", "transformer_lm", "begin"),
        ("albert_base", "transformer_lm", "transformer_encoder", "num_hidden_groups"),
    ],
)
def test_a_set_of_another_model_is_refused(hparams_set, model, owner, name):
    words = f"^--hparams_set={hparams_set}: this set is for --model={owner}, .* has no {name}"
    with pytest.raises(UserError, match=words):
        run_hparams({}, hparams_set, model=model)
    assert run_hparams({}, hparams_set, model=owner).get(name) is not None


@pytest.mark.parametrize(
    "of_set, changes",
    [
        ("transformer_tiny", "optimizer=multistep_adam,optimizer_multistep_accumulate_steps=4"),
        ("transformer_base_multistep8", ""),
        ("transformer_base_multistep8", "gradient_accumulation_steps=8"),
    ],
)
def test_multistep_adam_given_again_is_no_change(of_set, changes, monkeypatch):
    """A run remembers it as Adam with accumulation."""
    made = run_hparams({}, of_set, changes)
    before = config(1, 1) | {"hparams_set": of_set, "hparams": made.values()}
    for again in ("", changes, f"gradient_accumulation_steps={made.gradient_accumulation_steps}"):
        assert run_hparams(before, of_set, again) == made
        with monkeypatch.context() as in_a_new_process:
            in_a_new_process.delitem(sys.modules, "keras")
            check_known(before, of_set, again, output_dir="run")
    other = run_hparams(before, of_set, "optimizer_multistep_accumulate_steps=16")
    assert other == made.parse("gradient_accumulation_steps=16")


def test_a_second_trainer_is_refused(tmp_path):
    """Afterwards the folder is free; tests/files/test_folders.py has another process."""
    for _ in range(2):
        refused = pytest.raises(UserError, match=f"another trainer .process {os.getpid()}. is using")
        with locked(str(tmp_path)), refused, locked(str(tmp_path)):
            pass


@pytest.mark.parametrize(
    "name",
    ["checkpoint", "flags.txt", ".lock", "train.log", "eval.log", "hparams.json", "model.ckpt-3.index", "vocab.a",
     "events.out.tfevents.1", "best/checkpoint", "best/vocab.a", "best/model.ckpt-3.index", "eval/vocab.a"],
)  # fmt: skip
def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path, name):
    check_places(str(tmp_path / "new"))
    (tmp_path / name).mkdir(parents=True)
    with pytest.raises(UserError, match=rf"{name}: is a folder\. Expected a file"):
        check_places(str(tmp_path), ["vocab.a"])


@pytest.mark.parametrize("name", ["best", "decode", "eval", "eval_test", "eval_train", "export"])
def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path, name):
    (tmp_path / "other").mkdir(), (tmp_path / name).write_text("")
    with pytest.raises(UserError, match=rf"{name}: is a file\. Expected a folder"):
        check_places(str(tmp_path))


CHECKS = {  # {what: (check, names that are right, wrong ones, what is said)}
    "problem": (check_names, {"problem": "algorithmic_identity_decimal40"}, {"problem": "translate_own"}, "problem"),
    "model": (check_names, {"model": "transformer"}, {"model": "transformer_lm"}, "model"),
    "set": (check_names, {"hparams_set": ""}, {"hparams_set": "transformer_small"}, "hparams_set"),
    "unknown set": (check_names, {}, {"hparams_set": "transformer_tyni"}, "'transformer_tyni'"),
    "hyperparameters": (check_unchanged, {"changes": "num_heads=4"}, {"changes": "num_heads=8"}, "num_heads=8"),
}


@pytest.mark.parametrize("what", CHECKS)
def test_names_that_contradict_a_run_are_refused(what):
    check, right, wrong, words = CHECKS[what]
    check(config(1, 1), **{"changes": ""} if check is check_unchanged else {})
    check(config(1, 1), **right)
    with pytest.raises(UserError, match=words):
        check(config(1, 1), **wrong)


@pytest.mark.parametrize(
    ("problem", "changes", "named"),
    [
        (
            "languagemodel_wikitext103_l4k",
            "max_length=64,min_length=3,eval_beam_size=8",
            ["max_length", "eval_beam_size"],
        ),
        ("languagemodel_ptb10k", "max_length=64,eval_decode_examples=0", []),
        ("sentiment_imdb", "max_length=64,eval_decode_examples=10", ["eval_decode_examples"]),
        ("translate_ende_wmt32k", "max_length=64,eval_alpha=1,eval_decode_examples=10,eval_tokenization=intl", []),
    ],
)
def test_settings_that_a_problem_does_not_read_are_named(problem, changes, named, caplog):
    warn_of_problem(registry.problem(problem), changes)
    assert [line.split()[1] for line in caplog.messages] == named
    assert all(f" has no effect on {problem}: its " in line for line in caplog.messages)
