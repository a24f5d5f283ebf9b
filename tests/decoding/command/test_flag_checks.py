"""Which flags and settings of t2t-decoder go together, and with which model: tables of what is refused or warned of."""
# Nearest tests of: t2t_lite/settings/search_options.py, t2t_lite/decoding/command/decode_hparams.py

import re
import types

import pytest

from t2t_lite import registry
from t2t_lite.decoding.command import flag_checks
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.flag_checks import DecodeRequest, check
from t2t_lite.errors import UserError
from tests.registered import registered

PROBLEMS = {
    "transformer": "translate_own",
    "transformer_lm": "languagemodel_own",
    "transformer_encoder": "classify_own",
}
FILE, RECORDS, TUNED = {"decode_from_file": "in"}, {"problem": "p", "data_dir": "d"}, {"tune": "grid", "data_dir": "d"}
SCORES, TYPED = {"score_file": "pairs"}, {"decode_interactive": True}


def run_of(model):
    problem = registry.problem(PROBLEMS.get(model, "translate_own"))
    return types.SimpleNamespace(checkpoint="run/model.ckpt-7", config={"model": model}, problem=problem)


def asked(flags, models=(), settings=None):
    parsed = settings if settings is None else DecodeHParams.parse(settings, mbr=bool(flags.get("mbr")))
    return DecodeRequest(flags, [*map(run_of, models)], parsed, settings or "")


TRANSLATED = {
    "decode_reference": FILE, "prefix_file": FILE, "alignments_file": FILE, "mbr": FILE, "split_sentences": FILE,
    "eval_use_test_set": RECORDS, "tune": TUNED, **{teller.flag: FILE for teller in flag_checks.TELLERS.values()},
}  # fmt: skip
ENCODERS = registered({"classify_own": "transformer_encoder"})


@pytest.mark.parametrize("model", ["transformer_lm", "transformer_encoder"])
@pytest.mark.parametrize("name", TRANSLATED)
def test_a_flag_about_translations_needs_a_model_that_translates(name, model):
    flags, kind = TRANSLATED[name] | {name: "x"}, {"transformer_lm": "language model"}.get(model, "encoder")
    with pytest.raises(UserError, match=f"--{name}: .*run/model.ckpt-7 is an? {kind}"):
        check(asked(flags, [model]))
    if name not in {teller.flag for teller in flag_checks.TELLERS.values()}:
        check(asked(flags, ["transformer"]))


REFUSED = [
    (FILE | {"features_file": "x"}, ["transformer"], "--features_file: .* is a transformer"),
    (FILE | {"features_file": "x"}, ["transformer_lm"], "--features_file: .* is a language model"),
    (SCORES, ["transformer_encoder"], "--score_file: .* is an encoder"),
    (RECORDS, ["transformer_lm"], "--data_dir: .* is a language model.*t2t-eval"),
    (RECORDS, ["transformer_encoder"], "--data_dir: .* is an encoder.*t2t-eval"),
    (FILE | {"mbr": "chrf", "prefix_file": "x"}, ["transformer_lm"], "--prefix_file, --mbr: "),
    (TYPED | {"decode_shards": 2}, [], "--decode_shards: .*--decode_from_file"),
    ({"decode_shards": 2}, [], "--decode_shards: .*--decode_from_file"),
    (FILE | {"decode_shards": 3, "worker_id": 3}, [], "--worker_id=3: .*--decode_shards=3"),
    (FILE | {"worker_id": 1}, [], "--worker_id=1: .*--decode_shards=1"),
    ({"tune": "grid"}, [], "--tune: .*--decode_from_file"),
    (TUNED | {"decode_reference": "x"}, [], "--tune: "),
    (TUNED | FILE, [], "--tune: "),
    (SCORES | {"keep_timestamp": True}, [], "--keep_timestamp: "),
    (SCORES | {"keep_timestamp": True, "decode_to_file": "-"}, [], "--keep_timestamp: "),
    (RECORDS | {"decode_to_file": "-"}, [], "--decode_to_file=-: "),
    (FILE | {"features_file": "-"}, [], "--features_file=-: "),
    ({"decode_from_file": "-", "features_file": "x"}, [], "--features_file=-: "),
    (FILE | {"tokenization": "zh"}, [], "--tokenization: .*--decode_reference"),
    (FILE | {"tokenization": "zh", "mbr": "chrf"}, [], "--tokenization: .*--mbr=bleu"),
]
TAKEN = [
    (FILE | {"decode_shards": 3, "worker_id": 2}, []),
    ({"decode_from_file": "-", "decode_shards": 1, "worker_id": 0}, []),
    (TUNED | {"tokenization": "zh"}, ["transformer"]),
    (FILE | {"tune": "grid", "decode_reference": "x", "tokenization": "zh"}, ["transformer"]),
    (SCORES | {"keep_timestamp": True, "decode_to_file": "out"}, ["transformer_lm"]),
    (RECORDS | {"tokenization": "zh", "decode_to_file": "out"}, ["transformer"]),
    (RECORDS | {"decode_from_file": "in"}, ["transformer_lm"]),
    (RECORDS | SCORES, ["transformer_lm"]),
    (FILE | {"mbr": "bleu", "tokenization": "zh", "n_best_format": "json"}, ["transformer"]),
    (FILE | {"decode_reference": "x", "tokenization": "zh"}, ["transformer"]),
    (FILE | {"features_file": "x"}, ["transformer_encoder"]),
]


@pytest.mark.parametrize(("flags", "models", "message"), REFUSED, ids=str)
def test_flags_that_do_not_go_together(flags, models, message):
    with pytest.raises(UserError, match=f"^{message}"):
        check(asked(flags, models))


@pytest.mark.parametrize(("flags", "models"), TAKEN, ids=str)
def test_flags_that_go_together(flags, models):
    check(asked(flags, models, "" if models else None))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (FILE | {"decode_reference": "x"}, "--decode_reference: .*out.png"),
        (FILE | {"n_best_format": "json"}, "--n_best_format=json: .*out.png"),
        ({}, "--decode_to_file=out.png: .*--decode_from_file"),
        (FILE, None),
    ],
)
def test_lines_are_not_written_into_pictures(monkeypatch, flags, message):
    run = run_of("transformer")
    monkeypatch.setattr(type(run.problem), "writers", {"png": print}, raising=False)
    found = DecodeRequest(flags | {"decode_to_file": "out.png"}, [run])
    if message is None:
        check(found)
    else:
        with pytest.raises(UserError, match=f"^{message}"):
            check(found)
    check(DecodeRequest(flags | {"decode_to_file": "out.txt"}, [run]))


SAMPLED = ["sampling_temp=0.5", "sampling_keep_top_k=5", "sampling_keep_top_p=0.5", "sampling_seed=3"]
OF_BEAMS = ["alpha=1", "length_penalty=power", "ends=top", "return_beams=true"]
OF_OUTPUTS = ["no_repeat_ngram_size=3", "repetition_penalty=1.2", "stop=END", "banned_texts=bad", "beam_size=2",
              "extra_length=3", "write_beam_scores=true", "max_input_size=9", "replace_unknown=true",
              "identity_output=true", "log_results=true"]  # fmt: skip
RANDOM = "sampling_method=random"


@pytest.mark.parametrize("text", SAMPLED)
def test_settings_of_sampling_need_samples(text, caplog):
    name = text.partition("=")[0]
    with pytest.raises(UserError, match=f"^--decode_hparams: {name}: .*sampling_method=random"):
        check(asked(FILE, settings=text))
    for flags, settings in ((FILE, f"{text},{RANDOM}"), (FILE | {"mbr": "chrf"}, text), (TYPED, text)):
        check(asked(flags, settings=settings))
    usual = {"sampling_temp": "1.0", "sampling_keep_top_k": "-1", "sampling_keep_top_p": "1", "sampling_seed": "0"}
    check(asked(FILE, settings=f"{name}={usual[name]}"))
    assert caplog.text == ""
    check(asked(SCORES, settings=text))
    assert f"--decode_hparams: {name}: no effect on the targets in --score_file" in caplog.text


@pytest.mark.parametrize("text", OF_BEAMS)
def test_settings_of_beams_have_no_effect_on_samples(text, caplog):
    check(asked(FILE, settings=text))
    assert caplog.text == ""
    name = text.partition("=")[0]
    cases = [(FILE, f"{text},{RANDOM}", "samples"), (FILE | {"mbr": "chrf"}, text, "samples")]
    for flags, settings, what in [*cases, (SCORES, text, "the targets in --score_file")]:
        caplog.clear()
        check(asked(flags, settings=settings))
        assert f"--decode_hparams: {name}: no effect on {what}" in caplog.text


@pytest.mark.parametrize("text", OF_OUTPUTS)
def test_settings_of_outputs_have_no_effect_on_given_targets(text, caplog):
    for settings in (text, f"{text},{RANDOM}"):
        check(asked(FILE, settings=settings))
    assert caplog.text == ""
    check(asked(SCORES, settings=text))
    assert f"{text.partition('=')[0]}: no effect on the targets in --score_file" in caplog.text


def test_settings_of_several_outputs_have_no_effect_on_given_targets(caplog):
    check(asked(SCORES, settings="n_best=2,num_samples=3,num_decodes=4,batch_size=2,delimiter=|,shards=2"))
    (message,) = caplog.messages
    assert "n_best, num_samples, num_decodes: no effect on the targets in --score_file" in message


@pytest.mark.parametrize(
    ("flags", "models", "settings", "message"),
    [
        (FILE, [], "sampling_keep_top_k=5,sampling_seed=3", "sampling_keep_top_k, sampling_seed: .*them"),
        (FILE, [], f"{RANDOM},n_best=3,num_samples=2", "n_best=3: .*num_samples"),
        (RECORDS, [], f"{RANDOM},n_best=3,num_samples=3", "n_best=3: .*num_decodes"),
        (FILE, [], "num_samples=4", "num_samples=4: .*sampling_method=random"),
        (TYPED, [], "num_samples=4", "num_samples=4: .*sampling_method=random"),
        (FILE, [], f"{RANDOM},num_decodes=2", "num_decodes=2: .*records.*num_samples"),
        (RECORDS, [], "num_decodes=2", "num_decodes=2: .*sampling_method=random"),
        (FILE, [], f"{RANDOM},num_samples=5000", "num_samples=5000: .*from 1 to 4,096"),
        (FILE | {"mbr": "chrf"}, [], "num_samples=2,n_best=4", "n_best=4: .*num_samples=2"),
        (FILE | {"mbr": "chrf"}, [], "n_best=33", "n_best=33: .*num_samples=32"),
        ({}, [], "shards=2", "shards: .*--decode_from_file"),
        (TYPED, [], "shards=2", "shards: .*--decode_from_file"),
        (FILE | {"decode_reference": "x"}, [], "identity_output=true", "--decode_reference: .*identity_output=true"),
        (FILE, ["transformer_lm"], "replace_unknown=true", "replace_unknown: .* is a language model"),
        (FILE, ["transformer_encoder"], "beam_size=2,delimiter=|", "beam_size: .*one or more of batch_size, .*delim"),
        (FILE, ["transformer_encoder"], "n_best=2", "n_best: no effect on predictions"),
    ],
)
def test_settings_that_do_not_fit(flags, models, settings, message):
    with pytest.raises(UserError, match=message):
        check(asked(flags, models, settings))


@pytest.mark.parametrize(
    ("flags", "settings", "name"),
    [({"alignments_file": "links"}, "", "--alignments_file"), ({}, "replace_unknown=true", "replace_unknown")],
)
def test_a_language_model_that_translates_has_no_attention_to_inputs(flags, settings, name):
    found = asked(FILE | flags, ["transformer"], settings)
    check(found)
    found.runs[0].config["model"] = "transformer_lm"
    with pytest.raises(UserError, match=f"{name}: .* is a transformer_lm, which does not expose its attention to inp"):
        check(found)


@pytest.mark.parametrize(
    ("flags", "models", "settings"),
    [
        (FILE, [], f"{RANDOM},sampling_temp=0.5,beam_size=1,n_best=1"),
        (FILE, [], f"{RANDOM},num_samples=3,n_best=3"),
        (FILE, [], "n_best=2"),
        (RECORDS, [], "num_samples=9000"),
        (TUNED, [], "num_samples=9000"),
        (RECORDS, [], f"{RANDOM},num_samples=9000,num_decodes=2"),
        (FILE | {"mbr": "chrf"}, [], "num_samples=16,n_best=8"),
        (FILE | {"mbr": "chrf"}, [], "beam_size=1,n_best=32"),
        (FILE | {"mbr": "chrf"}, [], "beam_size=1,n_best=2,num_samples=2"),
        (FILE | {"decode_reference": "x", "n_best_format": "json"}, [], "identity_output=true"),
        (FILE, [], "shards=2,shard_id=1"),
        (FILE, ["transformer_encoder"], "batch_size=2,delimiter=|,log_results=true,max_input_size=9,shards=2"),
    ],
)
def test_settings_that_fit(flags, models, settings, caplog):
    check(asked(flags, models, settings))
    assert caplog.text == ""


def test_the_settings_of_a_model_and_of_the_flags():
    run = run_of("transformer")
    run.problem.decode_defaults = {"alpha": 0.3, "beam_size": 21}
    text = "beam_size=5,shards=7,shard_id=6"
    found = DecodeRequest(FILE | {"decode_hparams": text, "decode_shards": 3, "worker_id": 2}).of_model([run])
    settings = found.settings
    assert (settings.search.alpha, settings.search.beam_size) == (0.3, 5)
    assert (settings.shards, settings.shard_id, found.text, found.runs) == (3, 2, text, [run])
    assert DecodeRequest(FILE | {"decode_hparams": text}).of_model([run]).settings.shard_id == 6
    assert found.given("worker_id", "mbr", "decode_from_file") == {"worker_id": 2, "decode_from_file": "in"}


@pytest.mark.parametrize("name", registered({"masked_lm_own": "", "qa_own": ""}))
def test_an_encoder_has_more_answers_than_a_beam(name):
    run = run_of("transformer_encoder")
    run.problem = registry.problem(name)
    assert DecodeRequest(FILE | {"decode_hparams": "n_best=9"}).of_model([run]).settings.n_best == 9


def test_every_flag_of_the_table_is_in_a_mode_or_in_all():
    read = {name for mode in flag_checks.MODES.values() for name in mode.reads}
    for key in flag_checks._FLAGS:
        assert re.split("=", key)[0] in read | {"decode_shards", "worker_id", "tokenization", "data_dir"}
