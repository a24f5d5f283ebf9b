"""Derives hyperparameter sets from other sets."""


def changed(hparams, own=None, **changes):
    """Returns a copy of `hparams` in which some values are changed.

    Args:
        hparams: HParams.
        own: {name: value} for hyperparameters that only the set's model declares.
        **changes: new values of other hyperparameters.
    """
    made = hparams.override_from_dict(changes)
    for name, value in (own or {}).items():
        made.add_hparam(name, value)
    return made
