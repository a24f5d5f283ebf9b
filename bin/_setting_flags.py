"""Declares flags that are derived from settings, and the flags that scoring and evaluating commands share."""

import typing

from t2t_lite.decoding.command.decode_hparams import EVALUATION_SETTINGS
from t2t_lite.errors import LOGGER
from t2t_lite.evaluation.ter_options import TER_OPTIONS, check_ter_options
from t2t_lite.settings.ranges import MINUTES, Choices, Range, settings_of

_BY_LANGUAGE = "depends on the target language (13a for languages with spaces)"


def define_settings(flags, settings, prefix="", names=None):
    """Declares a flag `<prefix><name>` for each setting whose `meaning` is set.

    Args:
        settings: a class of settings, or {name: Setting}. If a setting is a list, the flag's default is an empty list.
        names: names of the settings for which flags are declared, or None for all settings.
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
    """Returns an instance of a settings class, filled with the values of the flags."""
    names = [name for name in settings_of(settings) if f"{prefix}{name}" in flags]
    return settings(**{name: flags[f"{prefix}{name}"].value for name in names} | more)


def define_evaluation_flags(flags):
    """Declares the flags for evaluations that t2t-trainer and t2t-eval share."""
    flags.DEFINE_integer(
        "eval_timeout_mins",
        240,
        "Stop waiting after this many minutes without a new checkpoint; 0: do not wait; -1: wait forever.",
        limits=Range(0, MINUTES.most, also=(-1,)),
    )
    flags.DEFINE_bool(
        "eval_use_test_set",
        False,
        "Evaluate the test records instead of the dev records, and write the results to eval_test/.",
    )
    flags.DEFINE_string(
        "decode_hparams",
        "",
        f"Search settings for the translations in evaluations: name=value,… for {', '.join(EVALUATION_SETTINGS)}. "
        "Default: the hyperparameters eval_beam_size and eval_alpha.",
    )
    define_tokenization(flags)
    flags.no_effect("eval_run_autoregressive", "every evaluation translates autoregressively anyway", is_bool=True)


def define_tokenization(flags, default=_BY_LANGUAGE):
    """Declares --tokenization; `default` is the description of the flag's default in --help."""
    flags.DEFINE_string(
        "tokenization",
        None,
        f"sacreBLEU's tokenization for BLEU: 13a, intl, zh, char, none, ja-mecab, flores200, …. Default: {default}.",
    )


def define_score_flags(flags, default=_BY_LANGUAGE):
    """Declares the flags of commands that score against reference files; for `default` see `define_tokenization`."""
    flags.DEFINE_paths(
        "reference", None, "File of reference translations, one per line; a,b,… for several references of each line."
    )
    flags.DEFINE_list(
        "metrics", "bleu,chrf", "Scores of sacreBLEU to compute: bleu, chrf, chrf++, ter (slow on long lines)."
    )
    define_tokenization(flags, default)
    for name, meaning in TER_OPTIONS.items():
        flags.DEFINE_bool(f"ter_{name}", False, meaning)


def check_score_flags(flags, others=()):
    """Raises `UserError` if a metric or the tokenization is unknown; warns of TER options that have no effect.

    Args:
        flags: absl's FlagValues.
        others: names of metrics that are computed in addition to --metrics.
    """
    from t2t_lite.evaluation import scores

    scores.check_metrics(flags.metrics, "--metrics")
    check_tokenization(flags)
    check_ter_options(options := ter_options(flags), "--ter_")
    if options and "ter" not in (*flags.metrics, *others):
        names = ", ".join(f"--ter_{name}" for name in options)
        LOGGER.warning(f"{names} has no effect without TER. Add it: --metrics={','.join(flags.metrics)},ter.")


def check_tokenization(flags):
    """Raises `UserError` if --tokenization is unknown or not installed."""
    from t2t_lite.evaluation.tokenizations import check_tokenization

    if flags.tokenization is not None:
        check_tokenization(flags.tokenization, "--tokenization")


def hparams_changes(flags):
    """Returns --hparams, with --tokenization added as the hyperparameter eval_tokenization, in which runs store it."""
    if flags.tokenization is None:
        return flags.hparams
    check_tokenization(flags)
    return ",".join(filter(None, [flags.hparams, f"eval_tokenization={flags.tokenization}"]))


def ter_options(flags):
    """Returns the TER options given on the command line, as arguments for `scores.make_metric`."""
    return {name: True for name in TER_OPTIONS if flags[f"ter_{name}"].value}
