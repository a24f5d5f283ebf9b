"""Describes a model's layers, its training cost and its export formats (`t2t-trainer --describe`)."""

import contextlib

from t2t_lite import registry
from t2t_lite.data.manifests import longest_row
from t2t_lite.errors import UserError
from t2t_lite.export.formats import destinations_text
from t2t_lite.extras.describe import describe
from t2t_lite.text.vocabulary import vocabulary_sizes

_VOCAB_SIZE = 37_000  # default vocabulary size, as in the paper


def describe_run(flags, hparams, earlier, model, replicas):
    """Returns a text that describes a run, which may not have started yet.

    Args:
        flags: the flags of t2t-trainer. Sizes of vocabularies that they lack are taken from the run, from the
            vocabulary, or from the paper.
        hparams: HParams.
        earlier: dict, the `hparams.json` of the run in --output_dir; {} if there is no run.
        model: str, name of the model.
        replicas: int, as for `describe.Description`.

    Raises:
        UserError: a name is unknown.
    """
    problem = flags.problem and registry.problem(flags.problem)  # an unknown name is always an error
    hparams_set = flags.hparams_set or earlier.get("hparams_set") or ""
    run_problem = problem or (earlier and registry.problem(earlier["problem"]))
    encoders = _encoders(run_problem, earlier and flags.output_dir) or _encoders(run_problem, flags.data_dir)
    vocab_size, target_vocab_size = flags.vocab_size, flags.target_vocab_size
    if vocab_size:
        where = "--vocab_size"
    elif earlier:
        where, vocab_size = flags.output_dir, earlier["vocab_size"]
        target_vocab_size = target_vocab_size or earlier["target_vocab_size"]
    elif encoders:
        where, (vocab_size, targets) = flags.data_dir, vocabulary_sizes(encoders)
        target_vocab_size = target_vocab_size or targets
    else:
        where, vocab_size = "assumed; change it with --vocab_size", _VOCAB_SIZE
    features = {"features": run_problem.features} if run_problem else {}
    hparams = run_problem.model_hparams(hparams.of_model(registry.model(model))) if run_problem else hparams
    shapes = describe.shapes_only(registry.model(model), hparams, vocab_size, target_vocab_size, **features)
    both = f"{vocab_size:,} ids" + (f" and {target_vocab_size:,} target ids" if target_vocab_size else "")
    description = describe.Description(
        shapes,
        hparams,
        hparams_set,
        flags.train_steps,
        replicas,
        flags.gpu_memory,
        longest_row=_longest_row(run_problem, hparams),
    )
    return (
        f"model {model}, set {hparams_set or '(own)'}, vocabulary {both} ({where})\n\n{description.text()}\n\n"
        f"{destinations_text(shapes, encoders)}"
    )


def _encoders(problem, folder):
    """Returns the problem's encoders, on which the possible export formats depend; None if they do not exist yet."""
    if problem and folder:
        with contextlib.suppress(UserError):
            return problem.get_feature_encoders(folder)
    return None


def _longest_row(problem, hparams):
    """Returns the length of a problem's rows; None without a problem, or if only its data tell the length."""
    if problem:
        with contextlib.suppress(UserError):
            return longest_row(problem, hparams)
    return None
