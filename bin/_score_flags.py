"""The flags of commands that score translations."""

from t2t_lite.evaluation.ter_options import TER_OPTIONS, check_ter_options

_OF_LANGUAGE = "that of the target language, such as zh for Chinese; of others 13a"


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
