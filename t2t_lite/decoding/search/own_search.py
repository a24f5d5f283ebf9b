"""Searches that models bring along: how they are called, and what is refused of them."""

from t2t_lite.decoding.search.beam_search import SearchResult
from t2t_lite.errors import UserError
from t2t_lite.settings.search_options import SearchOptions

# Settings that change which outputs are found; a beam of 4 is what nobody has asked for.
_MEANINGLESS = ("sampling", "n_best", "no_repeat_ngram_size", "repetition_penalty", "stop", "banned_texts")
_DEFAULTS = SearchOptions()


def searches(model):
    """Returns whether a model has a search of its own: see `SequenceModel`."""
    return callable(getattr(model, "search", None))


def own_search(model, inputs, limit, options, *, max_length=None, **settings):
    """Returns the SearchResult of a model's own search, which reads neither options nor settings. See `beam_search`."""
    return SearchResult(*model.search(inputs, limit, max_length=max_length)[:3])


def check_own_search(model, options, prefixes=()):
    """Raises `UserError` for what a model's own search can't do.

    Args:
        model: a model that `searches`.
        options: SearchOptions. The length penalty has no effect, nor has a beam of 4, the default.
        prefixes: lists of ids.
    """
    asked = [name for name in _MEANINGLESS if getattr(options, name) != getattr(_DEFAULTS, name)]
    asked += ["beam_size"] if options.beam_size not in (1, _DEFAULTS.beam_size) else []
    asked += ["prefixes"] if any(map(len, prefixes)) else []
    if asked:
        refuse(model, asked[0])


def refuse(model, what, instead="Leave it out."):
    """Raises a `UserError` that a model with a search of its own can't do something, and what to do instead."""
    raise UserError(
        f"{type(model).__name__}: {what} is for models that predict one id after the other; this one has a search of "
        f"its own, which finds one output. {instead}"
    )
