"""`hparams.json` of the right syntax and any shape: it is read, or its fault is named with the file."""

import copy
import json
import os
import re
import types

import pytest

from t2t_lite import registry
from t2t_lite.errors import UnknownName, UserError
from t2t_lite.runs.locating import find_run
from t2t_lite.runs.opening import open_run
from t2t_lite.runs.run_config import (
    build_model,
    import_usr_dir,
    lora_facts,
    lora_names,
    merged_config,
    read_earlier_run,
    read_run_config,
    run_config,
    write_run_config,
)
from t2t_lite.settings.config import HParams
from tests.runs import configs

CONFIG = configs.CONFIG | {
    "extras": {}, "batches_a_step": 2, "records_sha256": "00", "several_sentences": 0.5,
    "hparams": {"hidden_size": 8, "my_own": 3},
}  # fmt: skip
WRONG = [None, [], {}, "text", -1, 0, 1.5, True, 10**30, [{}], {"a": None}]
ALSO_RIGHT = {
    "problem": ["text"], "model": ["text"], "hparams_set": ["text"], "usr_dir": ["text"], "records_sha256": ["text"],
    "target_vocab_size": [None], "several_sentences": [None, 0, 0.0],
    "vocabulary_sha256": [{}], "hparams": [{}], "extras": [{}, {"a": None}],
}  # fmt: skip


def test_a_users_folder_is_stored_by_its_whole_path_and_a_package_by_its_name():
    encoders = {"targets": types.SimpleNamespace(vocab_size=2, fingerprint="00")}
    for given, stored in (("", ""), ("mine", os.path.abspath("mine")), ("t2t_lite.mine", "t2t_lite.mine")):
        config = run_config("problem", "model", HParams(), encoders, usr_dir=given)
        assert config["usr_dir"] == stored


@pytest.mark.parametrize(("rank", "alpha", "factor"), [(0, 5.0, 0.0), (4, 0.0, 1.0), (4, 6.0, 1.5), (8, 2.0, 0.25)])
def test_lora_is_scaled_by_alpha_over_rank(rank, alpha, factor):
    assert lora_facts(CONFIG | {"hparams": {"lora_rank": rank, "lora_alpha": alpha}}) == (rank, factor)


def test_the_config_of_a_merged_model_trains_everything():
    hparams = {"lora_rank": 4, "frozen": "encoder", "hidden_size": 8}
    merged = merged_config(CONFIG | {"hparams": hparams})
    assert merged == CONFIG | {"hparams": {"lora_rank": 0, "frozen": "", "hidden_size": 8}}
    names = {"a/lora_kernel_a", "a/lora_kernel_b", "a/kernel", "lora_kernel_a/kernel"}
    assert lora_names(names) == {"a/lora_kernel_a", "a/lora_kernel_b"}


def test_the_earlier_run_of_a_folder(tmp_path, monkeypatch):
    assert read_earlier_run(None) == read_earlier_run(str(tmp_path)) == {}
    imported = []
    monkeypatch.setattr("t2t_lite.runs.run_config.import_usr_dir", lambda *given: imported.append(given))
    write_run_config(str(tmp_path), CONFIG)
    assert read_earlier_run(str(tmp_path), imports=False) == {"format": 1, **CONFIG} and not imported
    assert read_earlier_run(str(tmp_path)) == {"format": 1, **CONFIG}
    assert imported == [(str(tmp_path), {"format": 1, **CONFIG})]


def test_the_policy_that_a_run_was_trained_with_may_be_overridden():
    config = CONFIG | {"hparams": registry.hparams("transformer_tiny").parse("hidden_size=8,num_heads=2").values()}
    for policy, expected in ((None, "float32"), ("mixed_bfloat16", "mixed_bfloat16")):
        assert build_model(config, policy).dtype_policy.name == expected


def test_a_users_folder_outside_of_the_run_is_imported(tmp_path, monkeypatch):
    """tests/models/test_hostile_directories.py has those that are not."""
    imported = []
    monkeypatch.setattr(registry, "import_usr_dir", imported.append)
    (tmp_path / "mine").mkdir()
    for usr_dir in ("", str(tmp_path / "mine"), "t2t_lite.extras.music"):
        import_usr_dir(str(tmp_path / "run"), CONFIG | {"usr_dir": usr_dir})
    assert imported == [str(tmp_path / "mine"), "t2t_lite.extras.music"]
    for usr_dir in ("mine.too", "mine", str(tmp_path / "run" / "mine"), str(tmp_path / "run"), str(tmp_path / "moved")):
        with pytest.raises(UserError, match=rf"run/hparams\.json: usr_dir={usr_dir!r}: .*--t2t_usr_dir=FOLDER"):
            import_usr_dir(str(tmp_path / "run"), CONFIG | {"usr_dir": usr_dir})
    assert len(imported) == 2


def mistake(folder):
    with pytest.raises(UserError) as error:
        read_run_config(str(folder))
    message = str(error.value)
    assert str(folder / "hparams.json") in message and "\n" not in message and len(message) < 500, message
    return message


def test_a_file_has_a_largest_size(tmp_path):
    write_run_config(str(tmp_path), CONFIG)
    with open(tmp_path / "hparams.json", "ab") as file:
        file.truncate(2**24)
        file.write(b" ")
    assert "larger than 16,777,216 bytes" in mistake(tmp_path)


@pytest.mark.parametrize("name", ["format", *CONFIG])
def test_an_entry_of_another_shape(tmp_path, name):
    write_run_config(str(tmp_path), CONFIG)
    path = tmp_path / "hparams.json"
    whole = json.loads(path.read_text())
    for value in WRONG:
        if any(type(value) is type(right) and value == right for right in ALSO_RIGHT.get(name, [])):
            continue
        path.write_text(json.dumps({**whole, name: value}))
        assert name in mistake(tmp_path), value
    if name not in ("extras", "batches_a_step", "records_sha256", "several_sentences"):  # which older runs lack
        path.write_text(json.dumps({key: value for key, value in whole.items() if key != name}))
        assert f"'{name}' is missing" in mistake(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", "wide"), ("hidden_size", [8]), ("hidden_size", None), ("num_heads", 0), ("num_heads", 10**30),
        ("label_smoothing", -1), ("optimizer", 3), ("pos", "nowhere"), ("my_own", None), ("my_own", {"a": 1}),
    ],
)  # fmt: skip
def test_a_hyperparameter_of_another_kind(tmp_path, name, value):
    config = copy.deepcopy(CONFIG)
    config["hparams"][name] = value
    write_run_config(str(tmp_path), config)
    assert name in mistake(tmp_path)


def test_settings_that_make_no_model(tmp_path):
    write_run_config(str(tmp_path), CONFIG | {"vocabulary_sha256": {}, "hparams": {"hidden_size": 9, "num_heads": 2}})
    (tmp_path / "model.ckpt-1.index").write_bytes(b"")
    with pytest.raises(UserError, match=str(tmp_path)):
        open_run(str(tmp_path))


def test_a_run_knows_the_extras_that_it_is_of():
    encoders = {"targets": types.SimpleNamespace(vocab_size=2, fingerprint="00")}
    for model in registry.list_built_in_models():
        config = run_config("translate_own_rev", model, HParams(), encoders)
        modules = registry.Registries.models.built_in()[model]
        extra = modules[0].split(".")[2] if modules[0].startswith("t2t_lite.extras.") else None
        assert config.get("extras", {}).get("model") == extra and "problem" not in config.get("extras", {})


@pytest.mark.parametrize("change", [{"model": "gone"}, {"problem": "gone_rev"}])
def test_a_run_of_an_extra_that_is_not_there(tmp_path, change):
    """Those that know their extra name it; of those written before it may be one."""
    ((kind, name),) = change.items()
    config = CONFIG | {"problem": "translate_own", "model": "transformer", "usr_dir": ""} | change
    write_run_config(str(tmp_path), config | {"extras": {kind: "parted"}})
    assert re.search(rf"hparams\.json: {kind}={name} .* extra 'parted'", mistake(tmp_path))
    config.pop("extras", None)
    write_run_config(str(tmp_path), config)
    (tmp_path / "model.ckpt-1.index").touch()
    for opens in (lambda: find_run(str(tmp_path)), lambda: read_earlier_run(str(tmp_path))):
        words = rf"^{tmp_path}/hparams\.json: {kind}={name} is not registered\. .*--t2t_usr_dir=FOLDER"
        with pytest.raises(UnknownName, match=words):
            opens()


def test_a_name_that_is_there_needs_no_extra(tmp_path):
    """As where a folder of a user has what was in an extra before."""
    names = {"problem": "translate_own", "model": "transformer", "extras": {"model": "parted"}}
    write_run_config(str(tmp_path), CONFIG | names)
    assert read_run_config(str(tmp_path))["model"] == "transformer"


@pytest.mark.parametrize(
    "problem", ["translate_own", "translate_own_rev", "translate_own_copy_rev", "translate_own_rev_copy"]
)
def test_the_suffixes_of_a_problem_may_have_any_order(tmp_path, problem):
    write_run_config(str(tmp_path), CONFIG | {"problem": problem})
    assert registry.problem(read_earlier_run(str(tmp_path))["problem"]).name == "translate_own"
