"""Models of Hugging Face's folders as Transformers loads them, and their searches under our limits."""

import collections

import torch
import transformers

from tests.peers.exchange import loaded

EXTRA = 20


def load(path):
    """Returns (model, tokenizer); nothing is asked of the network."""
    options = {"local_files_only": True}
    model = loaded(transformers.AutoModelForSeq2SeqLM, path, **options)
    assert type(model) in (transformers.MarianMTModel, transformers.BlenderbotForConditionalGeneration)
    assert type(model).__name__ in model.config.architectures
    return model.eval(), transformers.AutoTokenizer.from_pretrained(path, **options)


def generate(model, tokenizer, texts, **options):
    """Returns ids without start and EOS, under our limits: an output's longest length depends on its own input's."""
    by_length, found = collections.defaultdict(list), {}
    for at, text in enumerate(texts):
        by_length[len(tokenizer(text).input_ids)].append(at)
    for length, places in by_length.items():
        batch = tokenizer([texts[at] for at in places], return_tensors="pt")
        with torch.inference_mode():
            rows = model.generate(**batch, max_new_tokens=length + EXTRA, **options).tolist()
        for at, (start, *ids) in zip(places, rows, strict=True):
            assert start == model.config.pad_token_id
            eos = model.config.eos_token_id
            found[at] = [i for i in ids[: ids.index(eos) if eos in ids else None] if i != model.config.pad_token_id]
    return [found[at] for at in range(len(texts))]
