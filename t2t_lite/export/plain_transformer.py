"""What the formats of other toolkits have in common: one Transformer, as it is, with SentencePiece beside it."""

import inspect
import logging

from t2t_lite.data import files
from t2t_lite.data.problem import Problem
from t2t_lite.data.vocabulary import EOS_ID, PAD_ID, SentencePieceEncoder
from t2t_lite.errors import UserError
from t2t_lite.models.transformer import Transformer

_LOGGER = logging.getLogger("t2t_lite")
_TRAINING = (
    "vocab_size", "target_vocab_size", "dropout", "attention_dropout", "relu_dropout", "recompute_grad",
    "kernel_initializer", "bias_initializer",
)  # fmt: skip
# Options of the model that hyperparameters call otherwise.
_HPARAMS = {
    "norm": "layer_preprocess_sequence",
    "activation": "ffn_activation",
    "target_space_embedding": "use_target_space_embedding",
    "tie_embeddings": "shared_embedding_and_softmax_weights",
    "position": "pos",
    "key_dim": "attention_key_channels",
    "value_dim": "attention_value_channels",
    "neighborhood": "attention_neighborhood",
}


def check(translator, format_name):
    """Raises `UserError` unless a Translator's model is one Transformer; warns of what its problem does to texts.

    Args:
        translator: Translator.
        format_name: str, for messages.
    """
    model = translator.model
    if type(model) is not Transformer or model.attention_class is not None:
        found = "an ensemble" if type(model).__name__ == "Ensemble" else f"a {type(model).__name__}"
        raise UserError(
            f"{format_name} holds one Transformer without changes: this model is {found}. Expected model=transformer; "
            "t2t-avg-all averages checkpoints into one, and a SavedModel (--format=saved_model) holds every model."
        )
    problem = translator.problem
    changed = [name for name in ("input_text", "output_text") if problem and _overrides(problem, name)]
    if changed:
        _LOGGER.warning(
            f"{problem.full_name}: {' and '.join(changed)} of this problem are Python code, which {format_name} does "
            "not run: texts go in and come out as the vocabulary has them."
        )


def check_options(format_name, config, supported):
    """Raises `UserError`, which names the option, for a Transformer that another toolkit has not.

    Args:
        format_name: str, for messages.
        config: dict, the constructor's arguments.
        supported: {name of an option: tuple of the values that can be held; None: any}. Of an option that is not in
            it, the constructor's default can be held.
    """
    defaults = {name: p.default for name, p in inspect.signature(Transformer).parameters.items()}
    for name, value in config.items():
        possible = supported.get(name, (defaults[name],))
        if name not in _TRAINING and possible is not None and value not in possible:
            hparam = f" (hparam {_HPARAMS[name]})" if name in _HPARAMS else ""
            raise UserError(
                f"{format_name} holds no Transformer with {name}={value}{hparam}. Expected "
                f"{' or '.join(map(str, possible))}; a SavedModel (--format=saved_model) holds every model."
            )


def head_sizes(config):
    """Returns d_k and d_v of a head."""
    size = config["hidden_size"] // config["num_heads"]
    return config["key_dim"] or size, config["value_dim"] or size


def sentencepiece_models(encoders):
    """Returns {"source.spm": bytes, "target.spm": bytes}; {} for vocabularies that are not SentencePiece's."""
    if not all(isinstance(encoder, SentencePieceEncoder) for encoder in encoders.values()):
        return {}
    return {
        name: files.read_bytes(encoders[side].path)
        for name, side in (("source.spm", "inputs"), ("target.spm", "targets"))
    }


def unique_pieces(encoder):
    """Returns the pieces of a vocabulary by id; a special one that a piece of text is called like gets another name."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    for i in (PAD_ID, EOS_ID):
        while pieces.count(pieces[i]) > 1:
            pieces[i] = f"<{pieces[i]}>"
    return pieces


def description(translator):
    """Returns a sentence that says what was exported."""
    model, problem, run = translator.model, translator.problem, translator.run
    languages = problem.languages if problem else None
    parts = [f"A Transformer of {model.count_params():,} parameters"]
    if problem:
        parts.append(f"of the problem `{problem.full_name}`")
    if languages:
        parts.append(f"({languages[0]} to {languages[1]})")
    if run and run.step:
        parts.append(f"trained for {run.step:,} steps")
    return " ".join(parts) + " by t2t_lite."


def _overrides(problem, name):
    return getattr(type(problem), name) is not getattr(Problem, name)
