"""Imports a Transformer that was trained by tensor2tensor:

t2t-importer --from=tensor2tensor --path=old/model.ckpt-250000 --vocab=old/vocab.ende.32768.subwords \\
  --languages=en,de --output_dir=train
"""

from t2t_lite.cli.commands import Mode
from t2t_lite.errors import UserError, counted


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_paths(
        "vocab", [], "tensor2tensor's .subwords file, or two: that of the inputs and that of the targets."
    )
    flags.DEFINE_string(
        "hparams_set", "", "The set that tensor2tensor trained the model with, if its folder lacks hparams.json."
    )
    flags.DEFINE_string(
        "hparams", "", "Changes to the hyperparameters of tensor2tensor's model: name=value,name=value."
    )


def check(flags):
    """Raises `UserError` if there are too many vocabularies."""
    if len(flags.vocab) > 2:
        raise UserError(f"--vocab: found {counted(len(flags.vocab), 'file')}. Expected one, or inputs' and targets'.")


def run(flags):
    """Imports the model; returns the path of the checkpoint."""
    from t2t_lite.extras.tensor2tensor.sources import check_tensor2tensor

    check_tensor2tensor(flags.path, flags.vocab, flags.output_dir, flags.hparams_set)
    from t2t_lite.extras.tensor2tensor.tensor2tensor_hparams import import_tensor2tensor

    options = {name: flags[name].value for name in ("languages", "hparams_set", "hparams")}
    return import_tensor2tensor(flags.path, flags.vocab, flags.output_dir, **options)


MODES = {
    "tensor2tensor": Mode(
        "--from=tensor2tensor", ("vocab", "hparams_set", "hparams"), ("vocab", "languages"), run, check=check
    )
}
