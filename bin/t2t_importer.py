"""Imports a model that another package has trained as a run, for t2t-decoder, t2t-trainer and t2t-exporter.

    t2t-importer --from=tensor2tensor --path=old/model.ckpt-250000 --vocab=old/vocab.ende.32768.subwords \\
      --languages=en,de --output_dir=train
    t2t-importer --from=hugging_face --path=opus-mt-en-de --output_dir=train
    t2t-importer --from=hugging_face --path=gpt2 --output_dir=train
    t2t-importer --from=hugging_face --path=bert-base-uncased --output_dir=train

The new checkpoint's path is printed. docs/importing.md says what can be imported.
"""

import sys

from t2t_lite.bin import _app
from t2t_lite.cli.modes import Mode, check_mode, require
from t2t_lite.errors import UserError, counted

_PATH = (
    "The model: of tensor2tensor a checkpoint, …/model.ckpt-N, or the folder of a run; of hugging_face the folder of a "
    "MarianMTModel, of a GPT or GPT-2, of a BERT, one of its relatives or an XLNet, or of a Blenderbot that "
    "t2t-exporter has written."
)


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_enum("from", None, [*_MODES], "What has trained the model.")
    flags.DEFINE_path("path", None, _PATH)
    flags.DEFINE_paths(
        "vocab", [], "Of tensor2tensor: its .subwords file; two, inputs' and targets', where they differ."
    )
    flags.DEFINE_list(
        "languages", [], "Languages of inputs and targets, such as en,de; of hugging_face where its tokenizer has none."
    )
    flags.DEFINE_string(
        "problem",
        "",
        "Of hugging_face: for an encoder of pairs, classify_pair_own or regress_pair_own; masked_lm_own leaves the "
        "head of sentences out.",
    )
    flags.DEFINE_path("output_dir", None, "Folder of the new run; it must not exist yet.")
    flags.DEFINE_string(
        "hparams_set",
        "",
        "Of tensor2tensor: the set that the model was trained with, if hparams.json is not beside it.",
    )
    flags.DEFINE_string("hparams", "", "Of tensor2tensor: changes to these: name=value,name=value.")


def check(flags):
    """Raises `UserError` for mistakes that can be seen without imports."""
    require(flags, "from", "path", "output_dir")
    check_mode(flags, _MODES[flags["from"].value], _MODES)
    if len(flags.vocab) > 2:
        raise UserError(f"--vocab: found {counted(len(flags.vocab), 'file')}. Expected one, or inputs' and targets'.")


def run(flags):
    """Imports, and prints the path of the checkpoint."""
    print(_MODES[flags["from"].value].run(flags))


def _tensor2tensor(flags):
    from t2t_lite.interchange.sources import check_tensor2tensor

    check_tensor2tensor(flags.path, flags.vocab, flags.output_dir, flags.hparams_set)
    from t2t_lite.extras.tensor2tensor.tensor2tensor_run import import_tensor2tensor

    options = {name: flags[name].value for name in ("languages", "hparams_set", "hparams")}
    return import_tensor2tensor(flags.path, flags.vocab, flags.output_dir, **options)


def _hugging_face(flags):
    from t2t_lite.interchange.sources import read_hugging_face_config

    read_hugging_face_config(flags.path, flags.output_dir)
    from t2t_lite.interchange.hugging_face import import_hugging_face

    return import_hugging_face(flags.path, flags.output_dir, languages=flags.languages, problem=flags.problem)


_MODES = {
    "tensor2tensor": Mode(
        "--from=tensor2tensor", ("vocab", "hparams_set", "hparams"), ("vocab", "languages"), _tensor2tensor
    ),
    "hugging_face": Mode("--from=hugging_face", ("problem",), run=_hugging_face),
}


main = _app.command("t2t-importer", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())
