"""Exports language models as GPT2LMHeadModel or OpenAIGPTLMHeadModel, without using Hugging Face's package."""

from t2t_lite.export.model_card import toolkit_card
from t2t_lite.files import folders
from t2t_lite.interchange import formats, gpt
from t2t_lite.interchange.hugging_face_folder import write_hugging_face_folder
from t2t_lite.interchange.named_weights import state
from t2t_lite.interchange.published_vocabulary import published
from t2t_lite.text.published.word_bpe import WordBPEEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID


def export_gpt(generator, path, *, license="", command=""):
    """Writes a folder that AutoModelForCausalLM and AutoTokenizer load, offline; the caller has checked the model.

    A pre-norm model becomes a GPT2LMHeadModel, a post-norm one an OpenAIGPTLMHeadModel, both with the vocabulary's
    own files and ids, and its tokenizer. Logits are the same. The ids of padding and unknown text are left out if the
    files do not have them, so that probabilities are the same if the model never predicts these (`unused_ids`).

    Args:
        generator: Generator.
        path: str, a new or empty folder.
        license, command: see `export_hugging_face`.

    Returns:
        `path`, which appears when everything is written.
    """
    folders.check_new(path)
    model, encoder = generator.model, generator.encoders["targets"]
    vocabulary = published(encoder)
    kind, size = gpt.kind_of(model), model.config["max_position"]
    config = _config(model, kind, encoder)
    ends = {name: config[name] for name in ("bos_token_id", "eos_token_id")}
    card = toolkit_card(
        generator,
        title="A language model for Hugging Face Transformers",
        library="transformers",
        body=_USE,
        license=license,
        command=command,
        rows={"class": config["architectures"][0]},
    )
    contents = {
        "config.json": config,
        "generation_config.json": ends,
        **vocabulary.contents,
        "tokenizer_config.json": {
            **_tokenizer(encoder),
            "model_max_length": size,
            "clean_up_tokenization_spaces": False,
            **vocabulary.added_settings,
        },
        "README.md": card.encode(),
    }
    tensors = state(gpt.parts(model, kind), vocabulary.ids)
    return write_hugging_face_folder(path, {gpt.PREFIX + name: t for name, t in tensors.items()}, contents)


def _config(model, kind, encoder):
    config, architecture = model.config, gpt.ARCHITECTURES[kind]
    end = encoder.published_ids[EOS_ID]
    theirs = {ours: name for name, ours in reversed(architecture.activations.items())}
    return {
        "architectures": [f"{formats.hugging_face_class(model)}LMHeadModel"],
        "model_type": kind,
        "vocab_size": sum(i >= 0 for i in encoder.published_ids),
        "n_positions": config["max_position"],
        "n_embd": config["hidden_size"],
        "n_layer": config["num_layers"],
        "n_head": config["num_heads"],
        **({"n_inner": config["filter_size"]} if kind == "gpt2" else {}),
        architecture.activation: theirs[config["activation"]],
        "resid_pdrop": config["dropout"],
        "embd_pdrop": config["dropout"],
        "attn_pdrop": config["attention_dropout"],
        "layer_norm_epsilon": config["norm_epsilon"],
        "bos_token_id": end,
        "eos_token_id": end,
        "tie_word_embeddings": True,
        "dtype": "float32",
    }


def _tokenizer(encoder):
    if isinstance(encoder, WordBPEEncoder):
        return {"tokenizer_class": "OpenAIGPTTokenizer", "unk_token": encoder.tokens[UNK_ID]}
    tokens = dict.fromkeys(("bos_token", "eos_token", "unk_token"), encoder.tokens[EOS_ID])
    padding = {"pad_token": encoder.tokens[PAD_ID]} if encoder.published_ids[PAD_ID] >= 0 else {}
    return {"tokenizer_class": "GPT2Tokenizer", **tokens, **padding}


_USE = """```bash
pip install transformers torch
```

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForCausalLM.from_pretrained(".")
batch = tokenizer("The beginning of a text", return_tensors="pt")
print(tokenizer.decode(model.generate(**batch, max_new_tokens=50)[0], skip_special_tokens=True))
```
"""
