"""GPT and GPT-2 against GPT2LMHeadModel and OpenAIGPTLMHeadModel: the same logits and texts, there and back."""

import os

import keras
import numpy as np
import pytest
import torch
import transformers

from t2t_lite import registry
from t2t_lite.export import export_hugging_face
from t2t_lite.text.vocabulary import EOS_ID
from tests.extras.hugging_face.gpt_folders import SIZES, write_gpt
from tests.peers.exchange import imported, loaded, random_peer
from tests.text.published_samples import texts, write_byte_level, write_words

PROMPTS = ["", "the", "in the 12", "' s aaa", "I'll sing", "x" * 9]
NEW = 8


VOCABULARIES = {
    "byte-level": (write_byte_level, transformers.GPT2Tokenizer),
    "words": (write_words, transformers.OpenAIGPTTokenizer),
}


@pytest.fixture(
    scope="module",
    params=[
        ("gpt2", "byte-level"),
        *((kind, vocabulary) for kind in registry.list_families("openai") for vocabulary in VOCABULARIES),
    ],
    ids=lambda names: "-".join(names),
)
def both(request, tmp_path_factory):
    """(our Generator, Hugging Face's model and tokenizer) of one folder that Hugging Face's package has written."""
    kind, vocabulary = request.param
    write, tokenizer_class = VOCABULARIES[vocabulary]
    made = tmp_path_factory.mktemp(kind)
    folder, _ = write_gpt(made / "vocab", kind, write_vocabulary=write)
    size = transformers.AutoConfig.from_pretrained(folder).vocab_size
    config = transformers.AutoConfig.for_model(
        kind, **SIZES, vocab_size=size, bos_token_id=size - 1, eos_token_id=size - 1
    )
    model = random_peer(lambda: transformers.AutoModelForCausalLM.from_config(config))
    tokenizer = tokenizer_class(f"{folder}/vocab.json", f"{folder}/merges.txt")
    generator = imported(made, model, tokenizer)
    assert not {"vocab.json", "merges.txt"} & set(os.listdir(made / "theirs"))  # tokenizer.json holds it
    return generator, model, tokenizer


def published(generator, ids):
    return [generator.encoders["targets"].published_ids[i] for i in ids]


def test_logits(both):
    """Of texts of unequal lengths; ours begin with the end token, as theirs are given it."""
    generator, model, _ = both
    encoder = generator.encoders["targets"]
    rows = [ids for text in texts(40) if 0 < len(ids := encoder.encode(text)) <= 20]
    assert len(rows) > 20 and len({len(row) for row in rows}) > 5
    order = [encoder.published_ids.index(theirs) for theirs in range(model.config.vocab_size)]
    batch = np.zeros((len(rows), 20), "int32")
    for at, row in enumerate(rows):
        batch[at, : len(row)] = row
    ours = keras.ops.convert_to_numpy(generator.model({"targets": batch}))
    for at, row in enumerate(rows):
        ids = torch.tensor([published(generator, [EOS_ID, *row[:-1]])])
        with torch.inference_mode():
            theirs = model(ids).logits[0].numpy()
        np.testing.assert_allclose(ours[at, : len(row), order].T, theirs, atol=1e-4)
        score = generator.score([encoder.decode(row)])[0] if encoder.encode(encoder.decode(row)) == row else None
        if score:
            expected = torch.log_softmax(torch.tensor(theirs), -1).numpy()
            expected = [expected[t, published(generator, [i])[0]] for t, i in enumerate(row)]
            np.testing.assert_allclose(score.token_log_probs, expected, atol=1e-4)


def generated(both, prompt, **options):
    """Their new ids of a prompt, of our numbers, without the end."""
    generator, model, tokenizer = both
    ids = published(generator, generator.encoders["targets"].encode(prompt)) or [model.config.eos_token_id]
    assert ids == (tokenizer(prompt).input_ids or [model.config.eos_token_id])
    with torch.inference_mode():
        found = model.generate(
            torch.tensor([ids]), max_new_tokens=NEW, do_sample=False, pad_token_id=model.config.eos_token_id, **options
        )
    new = found[0, len(ids) :].tolist()
    order = generator.encoders["targets"].published_ids
    return [order.index(i) for i in new if i != model.config.eos_token_id]


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4},
        {"beam_size": 1, "no_repeat_ngram_size": 2},
        {"beam_size": 3, "no_repeat_ngram_size": 1},
        {"beam_size": 1, "repetition_penalty": 1.7},
    ],
    ids=str,
)
def test_the_same_continuations(both, options):
    generator = both[0]
    theirs = {"num_beams" if name == "beam_size" else name: value for name, value in options.items()}
    if options["beam_size"] > 1:
        theirs |= {"length_penalty": 0.0, "early_stopping": "never"}
    found = generator.generate(PROMPTS, max_new_tokens=NEW, alpha=0.0, ends="top", **options)
    assert [g.ids for g in found] == [generated(both, prompt, **theirs) for prompt in PROMPTS]
    assert len({tuple(g.ids) for g in found}) > 3


def test_it_goes_back(both, tmp_path):
    """As a folder that their package loads, with the same weights, ids and texts."""
    generator, model, tokenizer = both
    folder = export_hugging_face(generator, str(tmp_path / "back"))
    again = loaded(transformers.AutoModelForCausalLM, folder)
    assert type(again) is type(model)
    before, after = model.state_dict(), again.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    reader = transformers.AutoTokenizer.from_pretrained(folder)
    encoder = generator.encoders["targets"]
    for text in texts(60):
        ids = reader(text).input_ids
        assert ids == tokenizer(text).input_ids == published(generator, encoder.encode(text)), text
        assert reader.decode(ids) == encoder.decode(encoder.encode(text))
