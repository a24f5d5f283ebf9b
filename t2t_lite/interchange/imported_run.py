"""Writes the output_dir of a model that another program has trained."""

from t2t_lite import registry
from t2t_lite.runs.run_config import run_config
from t2t_lite.runs.saving import write_run


def write_imported_run(output_dir, problem, hold, *, model, hparams, fill, hparams_set="", step=0):
    """Writes the settings, vocabulary and checkpoint that commands on trained models need.

    The run belongs to a problem of the user's own files, without any; t2t-datagen makes data for it by
    `--vocab_from=<output_dir>`.

    Args:
        output_dir: str, which does not exist yet or is empty. It appears when everything is written.
        problem: str, name of the problem, such as translate_own.
        hold: function of the problem and a folder that writes the vocabulary there: by `hold_vocabulary` or
            `hold_vocabularies`.
        model: str, the model's name.
        hparams: HParams of the model.
        fill: function of the built model that sets its weights.
        hparams_set: str, name of the set of `hparams`, or "".
        step: int, number of updates of the model's training.

    Returns:
        The path of the checkpoint, without suffix.

    Raises:
        UserError: `output_dir` is not empty, or settings or vocabularies are invalid.
        Failure: writing failed; nothing is left behind.
    """

    def prepare(folder):
        own_problem = registry.problem(problem)
        hold(own_problem, folder)
        encoders = own_problem.get_feature_encoders(folder)
        usr_dir = registry.usr_dir_of(type(own_problem)) or registry.usr_dir_of(registry.model(model))
        return run_config(own_problem.name, model, hparams, encoders, hparams_set=hparams_set, usr_dir=usr_dir)

    return write_run(output_dir, prepare, fill, step)
