"""TransformerEncoder against BERT, RoBERTa, ALBERT and ERNIE of Hugging Face: hidden states and every head."""

import keras
import numpy as np
import pytest
import torch
import transformers

from t2t_lite.models import TransformerEncoder

VOCAB, LAYERS, CLASSES, FIRST = 40, 3, 4, 5
SIZES = {"hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "intermediate_size": 64}
INPUTS = np.array([[7, 8, 9, 1, 10, 11, 1, 0, 0], [12, 13, 1, 14, 1, 0, 0, 0, 0], [20, 21, 22, 23, 24, 25, 26, 27, 1]])
SEGMENTS = np.array([[0, 0, 0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0, 0, 0], [0] * 10])
ROWS = np.pad(INPUTS, ((0, 0), (1, 0)), constant_values=FIRST)
MASK = (ROWS != 0).astype("int64")


def encoder(**options):
    made = TransformerEncoder(
        VOCAB,
        num_layers=LAYERS,
        hidden_size=32,
        filter_size=64,
        num_heads=4,
        max_position=20,
        first_id=FIRST,
        **options,
    )
    made.build()
    return made


def theirs(name, config="BertConfig", **options):
    torch.manual_seed(3)
    settings = {"max_position_embeddings": 20, **SIZES, "vocab_size": VOCAB, **options}
    model = getattr(transformers, name)(getattr(transformers, config)(**settings)).eval()
    for path, weight in model.named_parameters():  # no weight is at a value that hides a mistake
        torch.nn.init.normal_(weight, mean=float("LayerNorm.weight" in path or "layer_norm.weight" in path), std=0.3)
    return model


def copy(layer, module):
    """Gives a layer of ours the weights of a linear layer or a normalization."""
    weight, bias = (tensor.detach().numpy() for tensor in (module.weight, module.bias))
    layer.set_weights([weight.T if weight.ndim == 2 else weight, bias])


def copy_embeddings(ours, body, first_position=0):
    """Gives our encoder the embeddings of theirs."""
    tables = body.embeddings
    words, positions, segments = (
        getattr(tables, f"{name}_embeddings").weight.detach().numpy().copy()
        for name in ("word", "position", "token_type")
    )
    words[0] = 0  # ours reads no padding
    ours.embedding.embeddings.assign(words)
    ours.segment_embedding.embeddings.assign(segments)
    ours.position.table.assign(positions[first_position : first_position + 20])
    copy(ours.embedding_norm, tables.LayerNorm)


def copy_body(ours, body, first_position=0):
    """Gives our encoder the embeddings and layers of theirs."""
    copy_embeddings(ours, body, first_position)
    for layer, theirs in zip(ours.encoder.layers, body.encoder.layer, strict=True):
        attention = layer.self_attention.layer
        for name in ("query", "key", "value"):
            copy(getattr(attention, f"{name}_projection"), getattr(theirs.attention.self, name))
        copy(attention.output_projection, theirs.attention.output.dense)
        copy(layer.self_attention.normalization, theirs.attention.output.LayerNorm)
        copy(layer.feed_forward.layer.inner, theirs.intermediate.dense)
        copy(layer.feed_forward.layer.outer, theirs.output.dense)
        copy(layer.feed_forward.normalization, theirs.output.LayerNorm)


def outputs(model, segments=SEGMENTS, **options):
    with torch.inference_mode():
        return model(
            input_ids=torch.tensor(ROWS),
            attention_mask=torch.tensor(MASK),
            token_type_ids=torch.tensor(segments),
            **options,
        )


def assert_hidden_states(ours, found):
    states = ours.encode(INPUTS, return_hidden_states=True)["states"]
    assert len(states) == len(found) == LAYERS + 1
    for our_state, their_state in zip(states, found, strict=True):
        visible = MASK[..., None]
        np.testing.assert_allclose(our_state * visible, their_state.numpy() * visible, atol=1e-4)


TARGETS = np.array([[7, 0, 9, 0, 0, 3, 0, 0, 0], [0] * 9, [0, 0, 0, 0, 0, 0, 5, 0, 0]])


def assert_pretraining(ours, peer, sentences):
    """Compares hidden states, masked ids and the two classes of sentences."""
    # The row of padding, which ours reads as zeros, is also the softmax's; the logit of id 0 is not compared.
    found = outputs(peer, output_hidden_states=True)
    assert_hidden_states(ours, found.hidden_states)
    logits = ours({"inputs": INPUTS, "targets": TARGETS, "sentence": np.array([1, 2, 1])})
    expected = found.prediction_logits.numpy()[:, 1:][TARGETS != 0]
    np.testing.assert_allclose(logits["targets"][:, 1:], expected[:, 1:], atol=1e-4)
    np.testing.assert_allclose(logits["sentence"][:, 1:], found[sentences].numpy(), atol=1e-4)


@pytest.mark.parametrize("name", ["Bert", "Ernie"])
def test_pretraining_of_bert_and_ernie(name):
    task_types = {"use_task_id": True, "task_type_vocab_size": 3} if name == "Ernie" else {}
    peer = theirs(f"{name}ForPreTraining", f"{name}Config", **task_types)
    ours = encoder(sentence_classes=2, num_task_types=task_types.get("task_type_vocab_size", 0))
    body = getattr(peer, name.lower())
    copy_body(ours, body)
    if task_types:
        ours.task_embedding.embeddings.assign(body.embeddings.task_type_embeddings.weight.detach().numpy())
    ours.embedding.bias.assign(peer.cls.predictions.decoder.bias.detach().numpy())
    copy(ours.masked_ids_head.dense, peer.cls.predictions.transform.dense)
    copy(ours.masked_ids_head.norm, peer.cls.predictions.transform.LayerNorm)
    copy(ours.sentence_head.pooler, body.pooler.dense)
    copy(ours.sentence_head.dense, peer.cls.seq_relationship)
    assert_pretraining(ours, peer, "seq_relationship_logits")


@pytest.mark.parametrize("groups", [1, 2])
def test_pretraining_of_albert(groups):
    peer = theirs("AlbertForPreTraining", "AlbertConfig", embedding_size=12, num_hidden_groups=groups)
    ours = encoder(sentence_classes=2, num_hidden_groups=groups, embedding_size=12, activation="gelu_tanh")
    copy_embeddings(ours, peer.albert)
    copy(ours.projection, peer.albert.encoder.embedding_hidden_mapping_in)
    for layer, group in zip(dict.fromkeys(ours.encoder.layers), peer.albert.encoder.albert_layer_groups, strict=True):
        (shared,) = group.albert_layers
        attention = layer.self_attention.layer
        for name in ("query", "key", "value"):
            copy(getattr(attention, f"{name}_projection"), getattr(shared.attention, name))
        copy(attention.output_projection, shared.attention.dense)
        copy(layer.self_attention.normalization, shared.attention.LayerNorm)
        copy(layer.feed_forward.layer.inner, shared.ffn)
        copy(layer.feed_forward.layer.outer, shared.ffn_output)
        copy(layer.feed_forward.normalization, shared.full_layer_layer_norm)
    ours.embedding.bias.assign(peer.predictions.decoder.bias.detach().numpy())
    copy(ours.masked_ids_head.dense, peer.predictions.dense)
    copy(ours.masked_ids_head.norm, peer.predictions.LayerNorm)
    copy(ours.sentence_head.pooler, peer.albert.pooler)
    copy(ours.sentence_head.dense, peer.sop_classifier.classifier)
    assert_pretraining(ours, peer, "sop_logits")


def test_masked_ids_of_roberta():
    peer = theirs("RobertaForMaskedLM", "RobertaConfig", type_vocab_size=1, max_position_embeddings=22, pad_token_id=1)
    ours = encoder(num_segments=1, norm_epsilon=1e-12)
    # Its positions are counted from pad_token_id + 1 over what is not padding, whose id is 1 there.
    copy_body(ours, peer.roberta, first_position=2)
    ours.embedding.bias.assign(peer.lm_head.decoder.bias.detach().numpy())
    copy(ours.masked_ids_head.dense, peer.lm_head.dense)
    copy(ours.masked_ids_head.norm, peer.lm_head.layer_norm)
    positions = torch.arange(2, 12)[None].expand(3, -1)
    found = outputs(peer, np.zeros_like(SEGMENTS), position_ids=positions, output_hidden_states=True)
    assert_hidden_states(ours, found.hidden_states)
    logits = ours({"inputs": INPUTS, "targets": TARGETS})
    np.testing.assert_allclose(logits[:, 1:], found.logits.numpy()[:, 1:][TARGETS != 0][:, 1:], atol=1e-4)


@pytest.mark.parametrize("kind", ["SequenceClassification", "TokenClassification", "QuestionAnswering"])
def test_heads_of_tasks(kind):
    labels = {} if kind == "QuestionAnswering" else {"num_labels": CLASSES}
    peer = theirs(f"BertFor{kind}", **labels)
    head = {"SequenceClassification": "class", "TokenClassification": "tag", "QuestionAnswering": "span"}[kind]
    ours = encoder(head=head, target_vocab_size=1 + CLASSES if labels else None)
    copy_body(ours, peer.bert)
    found = outputs(peer)
    if head == "span":
        copy(ours.span_head.dense, peer.qa_outputs)
        expected = np.stack([found.start_logits.numpy(), found.end_logits.numpy()], 1)[:, :, 1:]
        visible = (INPUTS != 0)[:, None]
        logits = keras.ops.convert_to_numpy(ours({"inputs": INPUTS, "targets": np.ones((3, 2), "int32")}))
        np.testing.assert_allclose(logits[:, :, 1:] * visible, expected * visible, atol=1e-4)
        return
    copy(ours.class_head.dense, peer.classifier)
    if head == "class":
        copy(ours.class_head.pooler, peer.bert.pooler.dense)
        logits = ours({"inputs": INPUTS, "targets": np.ones(3, "int32")})
        np.testing.assert_allclose(logits[:, 1:], found.logits.numpy(), atol=1e-4)
    else:
        visible = (INPUTS != 0)[..., None]
        logits = keras.ops.convert_to_numpy(ours({"inputs": INPUTS, "targets": INPUTS}))
        np.testing.assert_allclose(logits[..., 1:] * visible, found.logits.numpy()[:, 1:] * visible, atol=1e-4)
