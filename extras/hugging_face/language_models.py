"""Imports and exports language models (GPT and GPT-2) as Hugging Face folders."""

from t2t_lite.errors import UserError, shown
from t2t_lite.extras.hugging_face import named_weights
from t2t_lite.extras.hugging_face.family import check, hparams_of
from t2t_lite.extras.hugging_face.hugging_face_folder import Folder, read_weights, usage_of_transformers
from t2t_lite.extras.hugging_face.published_vocabulary import published, vocabulary_of
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.runs.saving import write_imported_run
from t2t_lite.text.published.bpe_files import BPEEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID
from t2t_lite.text.vocabulary_files import open_encoder


def import_language_model(family, path, config, output_dir):
    """Makes a run from a GPT2LMHeadModel or an OpenAIGPTLMHeadModel and its vocabulary.

    Given the same ids, our model and the foreign model compute the same logits. The end-of-text id represents an empty
    prompt, and is put before a text that is scored. The model never predicts the id of padding, nor ids that the
    published vocabulary lacks.

    Args:
        family: Family.
        path: str, a folder with `config.json`, `model.safetensors`, and either `tokenizer.json` or `vocab.json` and
            `merges.txt`.
        config: dict, see `Family.read`.
        output_dir: str, folder of the new run; it must not exist or must be empty.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged (the message names it).
        Failure: writing failed; nothing is left behind.
    """
    arguments = family.arguments(config)
    length = arguments["max_position"]
    weights = read_weights(path, family, "AutoModelForCausalLM")
    weights.check_sizes(arguments)
    with vocabulary_of(path) as vocabulary:
        encoder = open_encoder(vocabulary.path)
        _check_vocabulary(path, config, vocabulary, encoder)
        unused = [i for i, theirs in enumerate(encoder.published_ids) if theirs < 0 or i == PAD_ID]
        more = {"unused_ids": unused, "max_length": length, "label_smoothing": 0.0}
        return write_imported_run(
            output_dir,
            "languagemodel_own",
            lambda problem, folder: problem.hold_vocabulary(folder, vocabulary.path, sequence_length=length),
            model=TransformerLM.REGISTERED_NAME,
            hparams=hparams_of(arguments, TransformerLM).override_from_dict(more),
            fill=lambda model: weights.fill(model, family.weights, vocabulary.ids, arguments["vocab_size"]),
        )


def _check_vocabulary(folder, config, vocabulary, encoder):
    path = f"{folder}/config.json"
    if not isinstance(encoder, BPEEncoder):
        raise UserError(
            f"{folder}: has an encoder's vocabulary. Expected vocab.json and merges.txt, or a BPE tokenizer.json."
        )
    vocabulary.check_rows(path, config["vocab_size"])
    vocabulary.check_frame(folder, "A")
    end, config_end = encoder.published_ids[EOS_ID], config["eos_token_id"]
    expected = f"only {end}, the id of {shown(encoder.tokens[EOS_ID])}"
    check(path, "eos_token_id", config_end, config_end in (end, [end], None), expected)


def language_model_folder(family, generator):
    """Returns the Folder of a language model, for AutoModelForCausalLM and AutoTokenizer to load.

    The vocabulary's files and ids are kept, and the logits are the same. The ids of padding and unknown text are
    dropped if the vocabulary's files lack them. The probabilities are then the same if our model never predicts these
    ids (`unused_ids`).

    Args:
        family: Family.
        generator: Generator whose model the family supports; the caller has checked this.
    """
    model, encoder = generator.model, generator.encoders["targets"]
    vocabulary = published(encoder)
    ends = dict.fromkeys(("bos_token_id", "eos_token_id"), encoder.published_ids[EOS_ID])
    facts = {**ends, "vocab_size": sum(i >= 0 for i in encoder.published_ids)}
    (end,) = family.heads
    return Folder(
        title="A language model for Hugging Face Transformers",
        use=_USE,
        config=family.written(model.config, family.class_prefix + end, facts),
        tokenizer={
            **(vocabulary.tokenizer or _tokenizer(encoder)),
            "model_max_length": model.config["max_position"],
            "clean_up_tokenization_spaces": False,
            **vocabulary.added_settings,
        },
        tensors=named_weights.state(named_weights.parts(model, family.weights, family.is_transposed), vocabulary.ids),
        contents={"generation_config.json": ends, **vocabulary.contents},
    )


def _tokenizer(encoder):
    tokens = dict.fromkeys(("bos_token", "eos_token", "unk_token"), encoder.tokens[EOS_ID])
    padding = {"pad_token": encoder.tokens[PAD_ID]} if encoder.published_ids[PAD_ID] >= 0 else {}
    return {"tokenizer_class": "GPT2Tokenizer", **tokens, **padding}


_USE = usage_of_transformers(
    "AutoModelForCausalLM",
    'batch = tokenizer("The beginning of a text", return_tensors="pt")',
    "print(tokenizer.decode(model.generate(**batch, max_new_tokens=50)[0], skip_special_tokens=True))",
)
