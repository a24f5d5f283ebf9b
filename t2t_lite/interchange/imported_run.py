"""Writes the output_dir of a model that another program has trained."""

from t2t_lite import registry
from t2t_lite.runs.saving import write_run
from t2t_lite.text.vocabulary import vocabulary_sizes

PROBLEM = "translate_own"


def write_imported_run(output_dir, *, hparams, languages, vocabularies, ending, fill, hparams_set="", step=0):
    """Writes the settings, vocabulary and checkpoint that commands on trained models need.

    The run belongs to `translate_own`, without corpora: t2t-datagen makes data for it by `--vocab_from=<output_dir>`.

    Args:
        output_dir: str, which does not exist yet or is empty. It appears when everything is written.
        hparams: HParams of the Transformer.
        languages: (of the inputs, of the targets).
        vocabularies: {"inputs": bytes, "targets": bytes}, contents of the vocabulary files; if equal, they are shared.
        ending: str, extension of these files: ".model" or ".subwords".
        fill: function of the built model that sets its weights.
        hparams_set: str, name of the set that `hparams` come from, or "".
        step: int, number of updates that the model was trained for.

    Returns:
        The path of the checkpoint, without suffix.

    Raises:
        UserError: `output_dir` is not empty, or settings or vocabularies are impossible for a model.
        Failure: writing failed; nothing is left behind.
    """

    def prepare(folder):
        problem = registry.problem(PROBLEM)
        problem.hold_vocabularies(folder, languages, vocabularies, ending)
        return _config(problem, folder, "transformer", hparams, hparams_set)

    return write_run(output_dir, prepare, fill, step)


def write_run_of_one_vocabulary(output_dir, *, problem, model, hparams, vocabulary, remembered, fill, hparams_set=""):
    """As `write_imported_run`, for a model that reads texts of one vocabulary.

    Args:
        output_dir, hparams, fill, hparams_set: as there.
        problem: str, name of a problem of `OwnVocabulary`, to which the run belongs, without text.
        model: str, the model's name.
        vocabulary: str, path of the vocabulary, of any kind that `vocabulary_files` lists.
        remembered: dict, what else the problem stores: see `OwnVocabulary.hold_vocabulary`.

    Returns:
        The path of the checkpoint, without suffix. Errors are those of `write_imported_run`.
    """

    def prepare(folder):
        made = registry.problem(problem)
        made.hold_vocabulary(folder, vocabulary, **remembered)
        return _config(made, folder, model, hparams, hparams_set)

    return write_run(output_dir, prepare, fill)


def _config(problem, folder, model, hparams, hparams_set=""):
    """Returns the contents of `hparams.json`."""
    encoders = problem.get_feature_encoders(folder)
    vocab_size, target_vocab_size = vocabulary_sizes(encoders)
    return {
        "problem": problem.name,
        "model": model,
        "hparams_set": hparams_set,
        "vocab_size": vocab_size,
        "target_vocab_size": target_vocab_size,
        "vocabulary_sha256": {side: encoder.fingerprint for side, encoder in encoders.items()},
        "usr_dir": "",
        "hparams": hparams.values(),
    }
