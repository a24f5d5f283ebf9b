"""Derives hyperparameter sets from other sets."""

from t2t_lite.settings.config import HParams


def changed(hparams, own=None, sizes=None, **changes):
    """Returns a copy of `hparams` in which some values are changed.

    Args:
        hparams: HParams.
        own: {name: value} for hyperparameters that only the set's model declares.
        sizes: (layers, hidden size, heads) as papers give them; the feed-forward networks are four times as wide.
        **changes: new values of other hyperparameters.
    """
    if sizes:
        layers, hidden_size, num_heads = sizes
        changes |= {"num_hidden_layers": layers, "hidden_size": hidden_size, "num_heads": num_heads}
        changes["filter_size"] = 4 * hidden_size
    copy = hparams.override_from_dict(changes)
    for name, value in (own or {}).items():
        copy.add_hparam(name, value)
    return copy


def of_gpt_and_bert(own=None, **changes):
    """Returns what GPT and BERT base have in common, changed: BERT base has the sizes of GPT, to be compared with it.

    Args:
        own, **changes: see `changed`.
    """
    common = changed(
        HParams(),
        sizes=(12, 768, 12),
        attention_bias=True,
        pos="emb",
        max_position=512,
        multiply_embedding_mode="none",
        initializer="normal",
        initializer_gain=0.02,
        attention_dropout=0.1,
        label_smoothing=0.0,
        optimizer="adam_w",
        weight_decay=0.01,
        optimizer_adam_beta2=0.999,
        clip_grad_norm=1.0,
    )
    return changed(common, own, **changes)
