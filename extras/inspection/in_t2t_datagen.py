"""--inspect describes finished data instead of generating data:

t2t-datagen --inspect --problem=translate_own --data_dir=data --hparams_set=transformer_big
"""

from t2t_lite.cli.commands import Mode


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_bool(
        "inspect",
        False,
        "Describe finished data instead of generating data: counts, examples, vocabulary, lengths (also in "
        "<problem>-lengths.png), and the batches of --hparams_set.",
    )
    flags.DEFINE_string("hparams_set", "transformer_base", "With --inspect: name of the hyperparameter set.")
    flags.DEFINE_string("hparams", "", "With --inspect: hyperparameters that override the set: name=value,name=value.")


def run(flags, names, data_dir):
    """Prints a description of each problem's data."""
    from t2t_lite import registry

    hparams = registry.hparams(flags.hparams_set).parse(flags.hparams)
    for name in names:
        registry.problem(name).open_encoders(data_dir)  # raises an error early if there are no data
    from t2t_lite.extras.inspection.inspection import inspect_data

    set_name = flags.hparams_set + (f" with {flags.hparams}" if flags.hparams else "")
    for name in names:
        for paragraph in inspect_data(registry.problem(name), data_dir, hparams, set_name):
            print(f"{paragraph}\n", flush=True)


MODES = {"inspect": Mode("--inspect", ("hparams_set", "hparams"), run=run, selected_by=lambda flags: flags.inspect)}
