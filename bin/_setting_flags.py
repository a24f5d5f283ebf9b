"""Flags that are derived from settings, and those of commands that score or evaluate."""

import typing

from t2t_lite.decoding.command.decode_hparams import EVALUATION_SETTINGS
from t2t_lite.evaluation.ter_options import TER_OPTIONS, check_ter_options
from t2t_lite.settings.ranges import MINUTES, Choices, Range, settings_of

_OF_LANGUAGE = "that of the target language, such as zh for Chinese; otherwise 13a"


def define_settings(flags, settings, prefix="", names=None):
    """Declares the flags `<prefix><name>` of settings: those with a meaning, or only `names`.

    Args:
        settings: a class of settings, or {name: Setting}. A list is empty by default.
    """
    settings = settings if isinstance(settings, dict) else settings_of(settings)
    for declared in settings.values():
        if declared.meaning and (names is None or declared.name in names):
            _define(flags, f"{prefix}{declared.name}", declared, getattr(declared, "is_path", False))


def _define(flags, name, declared, is_path):
    kind, default = declared.kind, declared.default
    kind = next(k for k in (*typing.get_args(kind), kind) if k in (int, float, bool, str, list))
    if kind is list:
        define = flags.DEFINE_paths if is_path else flags.DEFINE_list
        define(name, default or [], declared.meaning)
    elif kind is str and isinstance(declared.limits, Choices):
        flags.DEFINE_enum(name, default, list(declared.limits.words), declared.meaning)
    elif kind is str:
        (flags.DEFINE_path if is_path else flags.DEFINE_string)(name, default, declared.meaning)
    elif kind is bool:
        flags.DEFINE_bool(name, default, declared.meaning)
    else:
        define = flags.DEFINE_integer if kind is int else flags.DEFINE_float
        define(name, default, declared.meaning, limits=declared.limits)


def read_settings(flags, settings, prefix="", **more):
    """Returns the settings of a class with the values of the flags."""
    names = [name for name in settings_of(settings) if f"{prefix}{name}" in flags]
    return settings(**{name: flags[f"{prefix}{name}"].value for name in names} | more)


def define_evaluation_flags(flags):
    """Declares the flags of evaluations that t2t-eval has as well."""
    flags.DEFINE_integer(
        "eval_timeout_mins",
        240,
        "Stop waiting after this many minutes without a new checkpoint; 0: do not wait; -1: wait for ever.",
        limits=Range(0, MINUTES.most, also=(-1,)),
    )
    flags.DEFINE_bool("eval_use_test_set", False, "Evaluate the test records, into eval_test/, not the dev ones.")
    flags.DEFINE_string(
        "decode_hparams",
        "",
        f"name=value,… of {', '.join(EVALUATION_SETTINGS)} for the evaluations' translations; default: the "
        "hyperparameters eval_beam_size, eval_alpha.",
    )
    define_tokenization(flags)
    flags.no_effect("eval_run_autoregressive", "sentences are really translated at every evaluation", is_bool=True)


def define_tokenization(flags, default=_OF_LANGUAGE):
    """Declares --tokenization; `default` describes its default in --help."""
    flags.DEFINE_string(
        "tokenization",
        None,
        f"BLEU's tokenization: 13a, intl, zh, char, none, ja-mecab, flores200, … of sacreBLEU. Default: {default}.",
    )


def define_score_flags(flags, default=_OF_LANGUAGE):
    """Declares the flags of scores against reference files; `default` is that of `define_tokenization`."""
    flags.DEFINE_paths("reference", None, "File of references, line by line; a,b,…: several translations of each line.")
    flags.DEFINE_list("metrics", "bleu,chrf", "sacreBLEU's scores: bleu, chrf, chrf++, ter (slow on long lines).")
    define_tokenization(flags, default)
    for name, meaning in TER_OPTIONS.items():
        flags.DEFINE_bool(f"ter_{name}", False, meaning)


def check_score_flags(flags):
    """Raises `UserError` for unknown metrics or tokenizations, and options of TER without effect."""
    from t2t_lite.evaluation import scores

    scores.check_metrics(flags.metrics, "--metrics")
    check_tokenization(flags)
    check_ter_options(ter_options(flags), "--ter_")


def check_tokenization(flags):
    """Raises `UserError` if --tokenization is unknown or not installed."""
    from t2t_lite.evaluation.tokenizations import check_tokenization

    if flags.tokenization is not None:
        check_tokenization(flags.tokenization, "--tokenization")


def hparams_changes(flags):
    """Returns --hparams with --tokenization, which runs store as the hyperparameter eval_tokenization."""
    if flags.tokenization is None:
        return flags.hparams
    check_tokenization(flags)
    return ",".join(filter(None, [flags.hparams, f"eval_tokenization={flags.tokenization}"]))


def ter_options(flags):
    """Returns the options of TER that are given, as for `scores.make_metric`."""
    return {name: True for name in TER_OPTIONS if flags[f"ter_{name}"].value}
