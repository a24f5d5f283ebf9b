"""--from=hugging_face imports a folder of the Hugging Face Hub (Marian, GPT-2, BERT and their relatives):

t2t-importer --from=hugging_face --path=gpt2 --output_dir=train
t2t-importer --from=hugging_face --path=bert-base-uncased --output_dir=train
"""

from t2t_lite.cli.commands import Mode


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_string(
        "problem",
        "",
        "hugging_face only: the problem of an encoder. Pass classify_pair_own or regress_pair_own for text pairs, or "
        "masked_lm_own to drop the sentence-pair head.",
    )


def run(flags):
    """Imports a model and returns the path of its checkpoint."""
    from t2t_lite.extras.hugging_face.config_file import read_config

    read_config(flags.path, flags.output_dir)
    from t2t_lite.extras.hugging_face.hugging_face import import_hugging_face

    return import_hugging_face(flags.path, flags.output_dir, languages=flags.languages, problem=flags.problem)


MODES = {"hugging_face": Mode("--from=hugging_face", ("problem",), run=run)}
