"""Adapters of PEFT: LoRA's equation in its files, the same run again from adapter and base, and clear refusals."""

# Nearest tests of: extras/peft/adapter_parts.py, extras/peft/adapter_export.py, extras/peft/adapter_import.py
# Nearest tests of: extras/peft/adapter_matrices.py, extras/peft/adapter_head.py
# Nearest tests of: extras/peft/in_t2t_exporter.py, extras/peft/in_t2t_importer.py

import math
import pathlib
import shutil

import numpy as np
import pytest

import t2t_lite
from t2t_lite.errors import UserError
from t2t_lite.extras.hugging_face.hugging_face import export_hugging_face, import_hugging_face
from t2t_lite.extras.hugging_face.hugging_face_folder import read_tensors, write_tensors
from t2t_lite.extras.peft.adapter_export import export_adapter
from t2t_lite.extras.peft.adapter_import import import_adapter
from t2t_lite.runs.opening import open_run
from tests.extras.hugging_face.encoder_folders import CLASSES, write_encoder
from tests.extras.hugging_face.folders import config_of, configure, tensors_of
from tests.extras.peft.adapters import base_run, logits, tuned_run

FILE = "adapter_model.safetensors"
PREFIX = "base_model.model."


def adapter_of(folder):
    data = pathlib.Path(folder, FILE).read_bytes()
    return config_of(folder, "adapter_config.json"), read_tensors(data, FILE)


def made(kind, targets, folder):
    """Returns (path of the base, path of the run with LoRA, path of its adapter)."""
    base = base_run(kind, folder / "base")
    tuned = tuned_run(base, str(folder / "tuned"), lora_targets=targets)
    return base, tuned, export_adapter(t2t_lite.load(tuned), str(folder / "adapter"))


@pytest.fixture(scope="module", params=["bert", "gpt2", "paper"])
def saved(request, tmp_path_factory):
    """See `made`."""
    targets = {"gpt2": "query/value/filter"}.get(request.param, "")
    return made(request.param, targets, tmp_path_factory.mktemp(request.param))


@pytest.mark.slow
def test_pefts_equation(saved, tmp_path):
    """W + alpha / r B A of PEFT's names is what t2t-exporter writes for Transformers; a head is there as it is."""
    base, tuned, adapter = saved
    for name, run in (("before", base), ("after", tuned)):
        export_hugging_face(t2t_lite.load(run), str(tmp_path / name))
    before, after = tensors_of(tmp_path / "before"), tensors_of(tmp_path / "after")
    config, tensors = adapter_of(adapter)
    changed = {name for name in after if not np.array_equal(before[name], after[name])}
    modules = [name.removesuffix(".lora_A.weight") for name in tensors if name.endswith(".lora_A.weight")]
    heads = [name for name in tensors if ".lora_" not in name]
    assert {name.removeprefix(PREFIX) for name in (*(f"{module}.weight" for module in modules), *heads)} == changed
    for module in modules:
        a, b = tensors[f"{module}.lora_A.weight"], tensors[f"{module}.lora_B.weight"]
        key = next((key for key in config["rank_pattern"] if module.endswith(f".{key}")), None)
        assert len(a) == config["rank_pattern"].get(key, config["r"])
        scale = config["alpha_pattern"].get(key, config["lora_alpha"]) / len(a)
        delta = scale * b @ a
        weight = before[f"{module.removeprefix(PREFIX)}.weight"] + (delta.T if config["fan_in_fan_out"] else delta)
        np.testing.assert_allclose(after[f"{module.removeprefix(PREFIX)}.weight"], weight, atol=1e-5)
    for name in heads:
        np.testing.assert_array_equal(tensors[name], after[name.removeprefix(PREFIX)])
    assert not [m for m in config["target_modules"] if not any(module.endswith(f".{m}") for module in modules)]
    assert config["modules_to_save"] == (["bert.pooler.dense", "classifier"] if heads else None)


@pytest.mark.slow
def test_the_same_run_again(saved, tmp_path):
    """With LoRA apart, to train it further, and merged; the adapter that it writes is the same."""
    base, tuned, adapter = saved
    expected = logits(tuned)
    assert np.abs(logits(base) - expected).max() > 0.1
    import_adapter(adapter, base, str(tmp_path / "apart"))
    hparams, original = (open_run(path).hparams for path in (str(tmp_path / "apart"), tuned))
    for name in ("lora_rank", "lora_alpha", "lora_targets", "head"):
        assert hparams.get(name) == original.get(name)
    np.testing.assert_allclose(logits(str(tmp_path / "apart")), expected, atol=1e-5)
    import_adapter(adapter, base, str(tmp_path / "merged"), merge=True)
    assert open_run(str(tmp_path / "merged")).hparams.lora_rank == 0
    np.testing.assert_allclose(logits(str(tmp_path / "merged")), expected, atol=1e-5)
    export_adapter(t2t_lite.load(str(tmp_path / "apart")), str(tmp_path / "again"))
    (config, tensors), (_, again) = adapter_of(adapter), adapter_of(tmp_path / "again")
    assert config == adapter_of(tmp_path / "again")[0] and tensors.keys() == again.keys()
    for name, array in tensors.items():
        np.testing.assert_allclose(again[name], array, atol=1e-7, err_msg=name)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return made("bert", "query/value", tmp_path_factory.mktemp("bert"))


def changed(bert, tmp_path, config, tensors=None):
    """A copy of the adapter with other contents; without t2t_lite.json, as PEFT writes it."""
    folder = tmp_path / "changed"
    shutil.copytree(bert[2], folder)
    (folder / "t2t_lite.json").unlink()
    configure(folder, "adapter_config.json", **config)
    if tensors:
        write_tensors(str(folder / FILE), tensors(adapter_of(folder)[1]))
    return str(folder)


def refused(adapter, base, run, words):
    """An import says words in one line, and writes nothing."""
    with pytest.raises(UserError, match=words) as caught:
        import_adapter(adapter, base, str(run))
    assert "\n" not in str(caught.value) and not run.exists()


@pytest.mark.slow
def test_a_base_with_another_head(bert, tmp_path):
    """The adapter brings its head, with the labels that t2t_lite.json has."""
    folder, _ = write_encoder(tmp_path / "theirs", "BertForMaskedLM")
    import_hugging_face(folder, str(tmp_path / "masks"))
    import_adapter(bert[2], str(tmp_path / "masks"), str(tmp_path / "run"))
    predictor = t2t_lite.load(str(tmp_path / "run"))
    assert predictor.problem.name == "classify_own" and predictor.labels == ["red", "green", "blue"]
    np.testing.assert_allclose(logits(str(tmp_path / "run")), logits(bert[1]), atol=1e-5)
    without = changed(bert, tmp_path, {}, lambda t: {n: a for n, a in t.items() if "pooler" not in n})
    words = r"has no pooler\.dense\.weight, and neither has .*modules_to_save"
    refused(without, str(tmp_path / "masks"), tmp_path / "none", words)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Roberta", "DistilBert"])
def test_the_classes_of_families_with_another_layer_before_the_last(tmp_path, kind):
    """As many as the last layer has, whatever the names of other layers end in."""
    if f"{kind}ForSequenceClassification" not in CLASSES:
        pytest.skip("the family is an extra's")
    for head in ("SequenceClassification", "MaskedLM"):
        folder, _ = write_encoder(tmp_path / f"theirs {head}", f"{kind}For{head}")
        import_hugging_face(folder, str(tmp_path / head))
    tuned = tuned_run(str(tmp_path / "SequenceClassification"), str(tmp_path / "tuned"))
    adapter = export_adapter(t2t_lite.load(tuned), str(tmp_path / "adapter"))
    shutil.copytree(adapter, tmp_path / "pefts")
    (tmp_path / "pefts/t2t_lite.json").unlink()
    for path, labels in ((adapter, ["red", "green", "blue"]), (tmp_path / "pefts", ["LABEL_0", "LABEL_1", "LABEL_2"])):
        import_adapter(str(path), str(tmp_path / "MaskedLM"), str(tmp_path / labels[0]))
        assert t2t_lite.load(str(tmp_path / labels[0])).labels == labels


@pytest.mark.slow
@pytest.mark.parametrize(
    "more, query, value",
    [
        ({"use_rslora": True}, 6 / math.sqrt(3), 6 / math.sqrt(3)),
        ({"alpha_pattern": {"query": 12.0}}, 12 / 3, 6 / 3),
        ({"alpha_pattern": {r"layer\.\d+\..*\.query": 12.0, "uery": 1.0}}, 12 / 3, 6 / 3),
        ({"lora_alpha": 1}, 1 / 3, 1 / 3),
    ],
)
def test_factors(bert, tmp_path, more, query, value):
    """Of a rank-stabilized LoRA, and of one kind of kernel: as if B had them."""

    def scaled(tensors):
        by_name = {name: 2 / (query if "query" in name else value) for name in tensors}
        return {n: array * np.float32(by_name[n]) if "lora_B" in n else array for n, array in tensors.items()}

    import_adapter(changed(bert, tmp_path, more, scaled), bert[0], str(tmp_path / "run"))
    np.testing.assert_allclose(logits(str(tmp_path / "run")), logits(bert[1]), atol=1e-5)


def _without(end):
    return lambda tensors: {name: array for name, array in tensors.items() if not name.endswith(end)}


def _with(end, change):
    return lambda tensors: {name: change(array) if name.endswith(end) else array for name, array in tensors.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "tensors", "words"),
    [
        ({"peft_type": "IA3"}, None, r"adapter_config\.json: peft_type=IA3\. Expected LORA"),
        ({"use_dora": True}, None, r"use_dora=True\. Expected false"),
        ({"bias": "all"}, None, r"bias=all\. Expected none"),
        ({"init_lora_weights": "pissa"}, None, "init_lora_weights=pissa"),
        ({"r": 0}, None, r"r=0\. Expected a number from 1"),
        ({"lora_alpha": 0}, None, r"lora_alpha=0 for .*Expected a number above 0"),
        ({"alpha_pattern": {"layer.(1": 2.0}}, None, r"alpha_pattern: missing \).*Expected regular expressions"),
        ({}, _without("0.attention.self.query.lora_B.weight"), "query.lora_B.weight is missing. Expected float 16 x 3"),
        ({}, _with("lora_A.weight", lambda a: np.pad(a, [(0, 0), (0, 8)])), "float32 3 x 24. Expected .* 3 x 16, "),
        ({}, _with("lora_B.weight", lambda b: b * np.nan), "contains NaN or infinite numbers"),
        ({}, lambda t: {n.replace("r.1", "r.7"): a for n, a in t.items()}, r"layer\.7\..*no such kernel.*--base"),
        ({}, _without(("lora_A.weight", "lora_B.weight")), "has no LoRA matrices"),
        ({}, lambda t: {**t, "base_model.model.x.weight": np.zeros(2, "float32")}, r"x\.weight has no place"),
        ({"task_type": "CAUSAL_LM"}, None, "has no place in"),
    ],
)  # fmt: skip
def test_what_is_refused(bert, tmp_path, config, tensors, words):
    refused(changed(bert, tmp_path, config, tensors), bert[0], tmp_path / "run", words)


@pytest.mark.slow
@pytest.mark.parametrize("hparams", [{}, {"lora_rank": 0, "lora_alpha": 0.0, "frozen": "encoder"}])
def test_an_adapter_of_another_base(bert, tmp_path, hparams):
    """Of the same sizes: only the fingerprint differs, of the kernels or of the embeddings."""
    other = tuned_run(bert[0], str(tmp_path / "other"), **hparams)
    refused(bert[2], other, tmp_path / "run", r"belongs to a different base: .*--base=RUN")


@pytest.mark.slow
def test_runs_that_are_no_adapters(bert, tmp_path):
    frozen = tuned_run(bert[0], str(tmp_path / "frozen"), frozen="embedding")
    for run, words in ((bert[0], "lora_rank=0"), (frozen, "frozen=embedding")):
        with pytest.raises(UserError, match=words):
            export_adapter(t2t_lite.load(run), str(tmp_path / "adapter"))
    assert not (tmp_path / "adapter").exists()
