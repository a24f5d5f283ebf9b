"""Derives hyperparameter sets from other sets."""


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
    made = hparams.override_from_dict(changes)
    for name, value in (own or {}).items():
        made.add_hparam(name, value)
    return made
