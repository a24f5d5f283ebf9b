"""LoRA adapters against PEFT itself: it loads ours, and its own are loaded here; logits agree within 1e-4."""

import numpy as np
import peft
import pytest
import torch
import transformers

import t2t_lite
from t2t_lite.export import export_hugging_face
from t2t_lite.extras.hugging_face.published_vocabulary import published
from t2t_lite.extras.peft.adapter_export import export_adapter
from t2t_lite.extras.peft.adapter_import import import_adapter
from t2t_lite.runs.opening import open_run
from tests.extras.peft.adapters import IDS, base_run, logits, tuned_run
from tests.peers.weights import marian_batch

TRANSLATION = transformers.AutoModelForSeq2SeqLM, "SEQ_2_SEQ_LM"
KINDS = {  # {kind: (class of Transformers, PEFT's task)}
    "bert": (transformers.AutoModelForSequenceClassification, "SEQ_CLS"),
    "gpt2": (transformers.AutoModelForCausalLM, "CAUSAL_LM"),
    **dict.fromkeys(("marian", "paper"), TRANSLATION),
}
TARGETS = {  # kernels in PEFT's words, some of each model
    "bert": ["query", "value", "intermediate.dense"],
    "gpt2": ["c_attn", "c_fc"],
    "marian": ["q_proj", "v_proj", "out_proj", "fc2"],
}


@pytest.fixture(scope="module", params=KINDS)
def base(request, tmp_path_factory):
    """(kind, path of the base's run, path of the same model for Transformers)."""
    folder = tmp_path_factory.mktemp(request.param)
    run = base_run(request.param, folder / "base")
    export_hugging_face(t2t_lite.load(run), str(folder / "theirs"))
    return request.param, run, str(folder / "theirs")


def their_logits(kind, model, run):
    """Logits of the same ids, in our order of ids."""
    model = model.eval()
    with torch.inference_mode():
        if kind in ("marian", "paper"):
            return model(**marian_batch(IDS, IDS)).logits.numpy()
        opened = open_run(run)
        ids = np.array(published(opened.encoders["inputs" if kind == "bert" else "targets"]).ids)
        if kind == "gpt2":  # ours begins with the end of a text
            return model(
                input_ids=torch.tensor(ids[np.pad(IDS[:, :3], ((0, 0), (1, 0)), constant_values=1)])
            ).logits.numpy()
        rows = np.pad(IDS, ((0, 0), (1, 0)), constant_values=opened.model.config["first_id"])
        mask = np.pad(IDS != 0, ((0, 0), (1, 0)), constant_values=True)
        return model(torch.tensor(ids[rows]), torch.tensor(mask.astype("int64"))).logits.numpy()


def check(kind, run, model):
    ours, theirs = logits(run), their_logits(kind, model, run)
    if kind == "bert":
        ours = ours[:, 1:]
    elif kind == "gpt2":
        ids = np.array(published(open_run(run).encoders["targets"]).ids)
        ours, theirs = ours[:, :3, ids >= 0], theirs[:, :3, ids[ids >= 0]]
    else:
        ours, theirs = ours[IDS != 0][:, 1:], theirs[IDS != 0][:, 1:]
    assert np.abs(ours).max() > 0.1
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("targets", ["", "query/value"])
def test_peft_loads_ours(base, tmp_path, targets):
    kind, run, theirs = base
    tuned = tuned_run(run, str(tmp_path / "tuned"), lora_targets=targets)
    export_adapter(t2t_lite.load(tuned), str(tmp_path / "adapter"))
    plain = KINDS[kind][0].from_pretrained(theirs)
    model = peft.PeftModel.from_pretrained(plain, str(tmp_path / "adapter"))
    check(kind, tuned, model)
    check(kind, tuned, model.merge_and_unload())


@pytest.mark.parametrize("more", [{}, {"use_rslora": True, "rank_pattern": {"fc2": 2, "value": 2, "c_fc": 2}}])
def test_we_load_pefts(base, tmp_path, more):
    """LoRA and head as PEFT saves them, onto the base's run; kept apart, and merged."""
    kind, run, theirs = base
    targets = TARGETS["marian" if kind == "paper" else kind]
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=targets, task_type=KINDS[kind][1], **more)
    torch.manual_seed(0)
    model = peft.get_peft_model(KINDS[kind][0].from_pretrained(theirs), config)
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.2)
            assert "lora" in name or "classifier" in name
    model.save_pretrained(str(tmp_path / "adapter"))
    import_adapter(str(tmp_path / "adapter"), run, str(tmp_path / "apart"))
    import_adapter(str(tmp_path / "adapter"), run, str(tmp_path / "merged"), merge=True)
    for name in ("apart", "merged"):
        check(kind, str(tmp_path / name), model)
