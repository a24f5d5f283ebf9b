"""What the exchanges of models with Hugging Face's package share: random models there, and what has to come back."""

import re

import numpy as np
import torch
import transformers

import t2t_lite
from t2t_lite.export import import_hugging_face


def random_peer(make):
    """Returns the model that `make` gives, none of whose weights is at a value that hides a mistake."""
    torch.manual_seed(3)
    model = make().eval()
    for name, weight in model.named_parameters():
        is_scale = re.search(r"norm|ln_", name.lower()) and name.endswith("weight")
        torch.nn.init.normal_(weight, mean=float(bool(is_scale)), std=0.3)
    return model


def imported(made, model, tokenizer):
    """Returns what answers with the model of a folder that Hugging Face's package writes."""
    for each in (model, tokenizer):
        each.save_pretrained(made / "theirs")
    import_hugging_face(str(made / "theirs"), str(made / "run"))
    return t2t_lite.load(str(made / "run"))


def loaded(kind, folder, **options):
    """Returns the model of a folder, which has just its weights."""
    model, loading = kind.from_pretrained(folder, output_loading_info=True, **options)
    assert not loading["missing_keys"] and not loading["unexpected_keys"] and not loading["mismatched_keys"], loading
    return model


def assert_same_states(model, peer, inputs, batch, mask, tolerance):
    """The hidden states are the same but for the padding's; returns what the peer gives for its batch."""
    with torch.inference_mode():
        found = peer(**batch, output_hidden_states=True)
    states = model.encode(inputs, return_hidden_states=True)["states"]
    for ours, theirs in zip(states, found.hidden_states, strict=True):
        np.testing.assert_allclose(ours * mask[..., None], theirs.numpy() * mask[..., None], atol=tolerance)
    return found


def assert_same_tokenizer(folder, tokenizer, texts=(), fast_texts=()):
    """The tokenizer of a folder reads texts as the first one does, those with a mask, and, if it is fast, others."""
    reader = transformers.AutoTokenizer.from_pretrained(folder)
    assert (reader.cls_token_id, reader.pad_token_id) == (tokenizer.cls_token_id, tokenizer.pad_token_id)
    for text in [*texts, *(fast_texts if reader.is_fast else ()), f"the {tokenizer.mask_token} in"]:
        assert reader(text).input_ids == tokenizer(text).input_ids, text
