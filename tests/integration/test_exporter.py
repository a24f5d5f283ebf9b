"""t2t-exporter: what it hands to an export, and what it refuses."""
# Nearest tests of: bin/t2t_exporter.py, bin/_trained.py

import os
import shlex

import pytest
import tensorflow as tf

from t2t_lite.export import saved_model
from tests.decoding.runs import SENTENCES, make_encoder_run

PAIRS = "\n".join(f"{at % 3}\t{text}\t{text[:9]}" for at, text in enumerate(SENTENCES))
FEATURES = "--features_layers=0,2", "--features_join=sum", "--features_pooling=mean"


@pytest.mark.slow
def test_the_features_of_an_encoder_reach_the_export(call_command, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(saved_model, "export_saved_model", lambda *_, **options: given.append(options) or "x")
    run = make_encoder_run(tmp_path, "regress_pair_own", PAIRS)
    assert call_command("t2t-exporter", f"--output_dir={run}", *FEATURES)[:2] == (0, "x\n")
    assert given[0] | {"layers": (0, 2), "join": "sum", "pooling": "mean"} == given[0]


@pytest.mark.slow
def test_by_default_beside_the_checkpoint(call_command, made, monkeypatch):
    monkeypatch.setattr(tf.saved_model, "save", lambda module, path, signatures: None)
    for number in (1, 2):
        result = call_command("t2t-exporter", f"--checkpoint_path={made}/model.ckpt-100", "--as_text")
        assert result.stdout == f"{made}/export/{number}\n" and "--as_text has no effect" in result.stderr


@pytest.mark.slow
def test_every_setting_reaches_the_export(call_command, made, monkeypatch):
    given, exported = [], []

    def export(translator, folder, **options):
        given.append(options)
        exported.append((translator.run.step, folder))
        return "x"

    monkeypatch.setattr(saved_model, "export_saved_model", export)
    flags = f"--output_dir={made}", "--export_dir=there"
    settings = "beam_size=7,alpha=0.3,extra_length=9,length_penalty=power,ends=top,max_input_size=33,banned_texts=[x,y]"
    for more in ([], [f"--decode_hparams={settings}"]):
        assert call_command("t2t-exporter", *flags, *more)[:2] == (0, "x\n")
    assert exported == [(200, "there")] * 2  # the newest checkpoint
    for options in given:
        options.pop("command"), options.pop("license")
    assert given == [
        {"beam_size": 4, "alpha": 0.6, "extra_length": 50, "length_penalty": "gnmt", "ends": "any",
         "banned_texts": (), "max_input_length": None},  # that of the task
        {"beam_size": 7, "alpha": 0.3, "extra_length": 9, "length_penalty": "power", "ends": "top",
         "banned_texts": ("x", "y"), "max_input_length": 33},
    ]  # fmt: skip


@pytest.mark.slow
def test_an_ensemble_by_name_and_one_export_of_another(call_command, made, tmp_path, monkeypatch):
    """What the command hands on; that ensembles and bfloat16 answer rightly is tested with the library."""
    given = []
    monkeypatch.setattr(
        saved_model, "export_saved_model", lambda *args, **options: given.append((args, options)) or "x"
    )
    both = f"--checkpoint_path={made}/model.ckpt-100,{made}/model.ckpt-200"
    flags = [both, "--weights_dtype=bfloat16", "--decode_hparams=beam_size=2"]
    assert call_command("t2t-exporter", *flags).stdout == "x\n"
    ((translator, folder), options) = given.pop()
    assert [run.step for run in translator.runs] == [100, 200] and folder == f"{made}/export"
    assert {model.variable_dtype for model in translator.model.models} == {"bfloat16"}
    assert (options["license"], options["beam_size"]) == ("", 2)
    command = shlex.split(options["command"])
    assert command[0] == "t2t-exporter" and sorted(command[1:]) == sorted(flags)


@pytest.mark.parametrize(
    "flags, words",
    [
        (
            ["--decode_hparams=sampling_method=random,sampling_temp=0.5"],
            ["--decode_hparams: sampling_method, sampling_temp"],
        ),
        (["--decode_hparams=beam_size=2,n_best=2"], ["--decode_hparams: n_best", "signatures, such as n_best"]),
        (["--export_as_tfhub"], ["not supported"]),
        (["--export_dir=file"], ["file", "folder"]),
        (["--features_join=sum"], ["--features_join", "encoder", "translate_own"]),
    ],
)
def test_mistakes(call_command, assert_user_error, made, tmp_path, flags, words):
    (tmp_path / "file").write_text("")
    args = {f.split("=")[0]: f for f in [f"--output_dir={made}", "--export_dir=export", *flags]}
    assert_user_error(call_command("t2t-exporter", *args.values()), *words)
    assert os.listdir(tmp_path) == ["file"]
