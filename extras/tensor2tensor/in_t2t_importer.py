"""--from=tensor2tensor imports a Transformer that tensor2tensor trained:

t2t-importer --from=tensor2tensor --path=old/model.ckpt-250000 --vocab=old/vocab.ende.32768.subwords \\
  --languages=en,de --output_dir=train
"""

from t2t_lite.cli.commands import Mode
from t2t_lite.errors import UserError, counted


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_paths(
        "vocab", [], "tensor2tensor's .subwords file, or two files: one for the inputs and one for the targets."
    )
    flags.DEFINE_string(
        "hparams_set",
        "",
        "The hparams set that tensor2tensor trained the model with, if the model's folder lacks hparams.json.",
    )
    flags.DEFINE_string("hparams", "", "Hyperparameters of tensor2tensor's model to override: name=value,name=value.")


def check(flags):
    """Raises `UserError` if there are too many vocabularies."""
    if len(flags.vocab) > 2:
        raise UserError(f"--vocab: found {counted(len(flags.vocab), 'file')}. Expected one, or two (inputs,targets).")


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
