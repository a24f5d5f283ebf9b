"""Imports and exports Hugging Face Transformers folders (model and tokenizer) without using that package."""

import os
from collections.abc import Sequence

from t2t_lite import registry
from t2t_lite.decoding.generator import Generator
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError, shown
from t2t_lite.export import formats
from t2t_lite.extras.hugging_face import encoders, language_models, translation_models
from t2t_lite.extras.hugging_face.config_file import read_config
from t2t_lite.extras.hugging_face.family import families, family_of
from t2t_lite.files import folders
from t2t_lite.models.encoder_model import EncoderModel
from t2t_lite.models.transformer import Transformer
from t2t_lite.models.transformer_lm import TransformerLM


def export_hugging_face(
    translator: Translator | Generator | Predictor,
    path: str,
    *,
    beam_size: int | None = None,
    alpha: float | None = None,
    license: str = "",
    command: str = "",
) -> str:
    """Writes a folder that the auto classes and AutoTokenizer of Transformers 4 and 5 can load offline.

    A post-norm Transformer becomes a MarianMTModel. A pre-norm Transformer becomes a
    BlenderbotForConditionalGeneration. Both use Marian's tokenizer. `generate` returns the same ids as our search with
    `ends="top"` and `length_penalty="power"`. With a length penalty, this requires `early_stopping="never"`, because by
    default a heuristic decides when `generate` stops. Transformers 4 cannot load two vocabularies of different sizes.
    Two things differ from our search. In Transformers, a text that begins with `>>` and has a later `<<` is read as a
    language code, and an output is limited to 512 ids instead of the input's length + 50.

    A language model becomes a GPT2LMHeadModel or an OpenAIGPTLMHeadModel (see `language_models` in this folder). An
    encoder becomes a BERT, one of its relatives or an XLNet (see `encoders`). For these models, beam_size and alpha
    have no effect.

    Args:
        translator: Translator, Generator or Predictor. A Translator must have a single Transformer whose options Marian
            or Blenderbot supports, and one SentencePiece vocabulary (or two for Marian). docs/conversion.md has a table
            of these options; `t2t-trainer --describe` checks them before training.
        path: str, a new or empty folder.
        beam_size: int, the beam size in `generation_config.json`. The default is that of `Translator.translate`.
        alpha: float, exponent of the length penalty in Transformers, where score = log-probability / length^alpha. The
            default is that of `Translator.translate`.
        license: str, the model's license, or "" if not stated.
        command: str, the command that made the export, for README.md, or "".

    Returns:
        `path`. The folder appears only when everything is written.

    Raises:
        UserError: no family supports the type of the model or vocabulary, or the model's options (the message lists
            all unsupported ones); or the folder is not empty.
        Failure: writing failed; nothing is left behind.
    """
    formats.check("hugging_face", translator)
    folders.check_new(path)
    family = family_of(translator.model, translator.encoders)
    if family.model is TransformerLM:
        folder = language_models.language_model_folder(family, translator)
    elif issubclass(family.model, EncoderModel):
        folder = encoders.encoder_folder(family, translator)
    else:
        search = {name: value for name, value in {"beam_size": beam_size, "alpha": alpha}.items() if value is not None}
        folder = translation_models.translation_folder(family, translator, translator.search_options(search))
    return folder.write(path, translator, license, command)


def import_hugging_face(path: str, output_dir: str, *, languages: Sequence[str] = (), problem: str = "") -> str:
    """Makes a run from Marian, GPT, BERT or a relative, XLNet, or a Blenderbot that `export_hugging_face` wrote.

    GPT and GPT-2 become language models (see `language_models` in this folder). BERT, its relatives and XLNet become
    encoders (see `encoders`). The rest of this docstring is about Marian and Blenderbot, which become Transformers.
    Blenderbots that `export_hugging_face` did not write cannot be imported.

    The run can be used for decoding, export and fine-tuning (`--warm_start_from`). A search with `ends="top"` finds the
    same ids as `generate` with the same beam size and penalty (`length_penalty="power"`) and `early_stopping="never"`.
    Our search never outputs padding; in Transformers, `bad_words_ids` excludes it.

    Args:
        path: str, a folder with `config.json`, `model.safetensors` or `pytorch_model.bin`, `source.spm`, `target.spm`,
            `vocab.json` and optionally `tokenizer_config.json`. Reading `pytorch_model.bin` needs PyTorch, whose tensor
            reader runs no code. The embeddings, the softmax and the vocabulary may be shared or separate.
        output_dir: str, folder of the new run, which does not exist yet or is empty.
        languages: (language of the inputs, language of the targets), such as ("en", "de"). The default is taken from
            the tokenizer's configuration.
        problem: str, the problem of the run. An encoder of text pairs needs "classify_pair_own" or "regress_pair_own".
            "" is the default problem of the model's head.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged, or a setting of the model is not supported (the message names it).
        Failure: writing failed; nothing is left behind.

    Example:
        >>> import_hugging_face("opus-mt-en-de", "train")                            # doctest: +SKIP
        'train/model.ckpt-0'
    """
    document = read_config(path, output_dir)
    config_path = os.path.join(path, "config.json")
    kind = document.get("model_type")
    if kind not in registry.list_families():
        expected = ", ".join(registry.list_families())
        raise UserError(f"{config_path}: model_type is {shown(kind)}. Expected one of {expected}.")
    family = registry.family(kind)
    if languages and family.model is not Transformer:
        raise UserError(f"--languages applies only to translation models. Remove the flag for model_type {kind}.")
    if problem and not issubclass(family.model, EncoderModel):
        raise UserError(f"--problem applies only to encoders. Remove the flag for model_type {kind}.")
    config = family.read(config_path, document)
    if family.model is TransformerLM:
        return language_models.import_language_model(family, path, config, output_dir)
    if issubclass(family.model, EncoderModel):
        return encoders.import_encoder(family, path, config, output_dir, problem)
    return translation_models.import_translation_model(family, path, config, output_dir, languages)


@registry.register_export_format("hugging_face")
class HuggingFace(formats.Format):
    """The export format of Hugging Face folders, for all registered families."""

    def __init__(self):
        super().__init__("Hugging Face's Transformers")

    def label(self, model, encoders=None):
        """Returns the name of the family in Transformers, for messages."""
        family = family_of(model, encoders)
        return f"Hugging Face's {family.class_prefix}" if family else super().label(model)

    def obstacles(self, model, encoders=None):
        """See `Format`; the obstacles include vocabularies that the family's tokenizer does not support."""
        if reasons := formats.class_obstacles(model, {family.model for family in families()}):
            return reasons
        family = family_of(model, encoders) or next(entry for entry in families() if entry.model is type(model))
        reasons = formats.option_obstacles(model, family.supported(model.config))
        if kinds := {type(encoder).__name__ for encoder in family.strange_encoders(model, encoders or {})}:
            reasons.append(f"its vocabulary is a {' and a '.join(sorted(kinds))}, expected {family.vocabularies[1]}")
        return reasons

    def answer(self, model, encoders=None):
        """See `Format`; names the family and, if the vocabulary is unknown, the kind of vocabulary that it needs."""
        family = family_of(model, encoders)
        return f"yes, {family.class_prefix}{'' if encoders else f', with a {family.vocabularies[1]} vocabulary'}"
