"""Advice for flags that a command does not have: where the same thing is set instead."""

from t2t_lite.cli import commands
from t2t_lite.errors import nearest
from t2t_lite.settings import tensor2tensor_names


def answer(name, flags):
    """Returns a sentence or two for the user.

    Args:
        name: name of the flag, or another word.
        flags: the command's `Flags`.
    """
    name = name.lstrip("-").replace("-", "_")
    if name in flags:
        return f"Nearest: --{name}."
    setting = name.removeprefix("decode_")
    is_decoding = setting in tensor2tensor_names.DECODING and "decode_hparams" in flags
    takes_hparams = name in _hparams() and flags.has_effect("hparams")
    if instead := tensor2tensor_names.flag_answer(name):
        return instead
    if is_decoding and takes_hparams:
        return (
            f"The search has it in --decode_hparams={name}=VALUE, the model and its training in --hparams={name}=VALUE."
        )
    if is_decoding:
        return f"It is a setting of decoding: --decode_hparams={setting}=VALUE."
    if others := [c for c, module in commands.modules().items() if commands.flags_of(module).has_effect(name)]:
        return f"It is a flag of {', '.join(others)}; leave it out here."
    if takes_hparams:
        return f"It is a hyperparameter: --hparams={name}=VALUE."
    if instead := tensor2tensor_names.hparam_answer(name):
        return instead
    close = nearest(f"--{name}", [f"--{flag.name}" for flag in flags.shown()])
    return f"{close} All are listed by --help.".lstrip()


def _hparams():
    from t2t_lite.settings.config import HParams

    return HParams()
