"""MarianMTModels of Hugging Face, OPUS-MT's among them, become a run of this package."""

import io
import json
import os

import numpy as np

from t2t_lite.config import HParams
from t2t_lite.data import files
from t2t_lite.errors import UserError
from t2t_lite.export import marian, marian_vocabulary
from t2t_lite.export.imported_run import check_new, write_imported_run
from t2t_lite.export.safetensors_file import read_tensors

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
_SIZES = ("d_model", "vocab_size", "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim", "decoder_layers")
_NOT_LOOKED_AT = ("embed_positions.weight", "embed_tokens.weight", "lm_head.weight", "model.shared.weight")


def import_hugging_face(path, output_dir, *, languages=()):
    """Makes a run of a Marian model: to decode with, to export, and to fine-tune (`--warm_start_from`).

    A search with `ends="top"` finds the ids that `generate` finds with the same beam and penalty
    (`length_penalty="power"`) and `early_stopping="never"`. Padding is no output here; there `bad_words_ids` says so.

    Args:
        path: str, a folder of `config.json`, `model.safetensors` or `pytorch_model.bin` (this needs PyTorch, which
            reads tensors alone, and runs nothing), `source.spm`, `target.spm`, `vocab.json` and, where it is there,
            `tokenizer_config.json`. Embeddings, softmax and vocabulary may be shared or not.
        output_dir: str, of the new run; a folder that does not exist yet, or is empty.
        languages: (of inputs, of targets), such as ("en", "de"); left out: what the tokenizer's configuration says.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file that is not there or damaged, or a setting of the model that is not here (it is named).
        Failure: writing failed; nothing is left behind.

    Example:
        >>> import_hugging_face("opus-mt-en-de", "train")                            # doctest: +SKIP
        'train/model.ckpt-0'
    """
    check_new(output_dir)
    config = _checked_config(os.path.join(path, "config.json"))
    tokenizer = _read_json(os.path.join(path, "tokenizer_config.json"), optional=True)
    languages = languages or (tokenizer.get("source_lang"), tokenizer.get("target_lang"))
    if not all(isinstance(language, str) and language for language in languages):
        raise UserError(f"{path}: which languages it translates is not said there. Expected --languages=en,de.")
    inputs, targets = _vocabularies(path, config, tokenizer)
    weights = _Weights(path)
    embeddings = _embeddings(weights, config, inputs, targets)
    is_one = inputs.model == targets.model

    def fill(model):
        marian.fill(model, weights.take)
        weights.check_all_taken()
        for layer, rows in (
            (model.input_embedding, embeddings["inputs"]),
            (model.target_embedding, embeddings["targets"]),
            (model.softmax, embeddings["softmax"]),
        ):
            layer.embeddings.assign(rows)
        model.softmax.bias.assign(embeddings["bias"])

    return write_imported_run(
        output_dir,
        hparams=_hparams(config, is_tied=config["tie_word_embeddings"] and (not is_one or _shares(config))),
        languages=tuple(languages),
        vocabularies={"inputs": inputs.model, "targets": targets.model},
        ending=".model",
        fill=fill,
    )


def _checked_config(path):
    """Returns `config.json` with what it leaves out. Raises `UserError`, which names what is not here."""
    config = {
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "activation_function": "gelu",
        "scale_embedding": False,
        **_read_json(path),
    }
    if config.get("model_type") != "marian":
        raise UserError(f"{path}: model_type is {config.get('model_type')!r}. Expected 'marian': a MarianMTModel.")
    config["decoder_vocab_size"] = config.get("decoder_vocab_size") or config.get("vocab_size")
    for name in (*_SIZES, "decoder_vocab_size"):
        if type(config.get(name)) is not int or not 1 <= config[name] <= 10_000_000:
            raise UserError(f"{path}: {name} is {config.get(name)!r}. Expected a whole number above 0.")
    for name in ("pad_token_id", "eos_token_id"):
        if type(config.get(name)) is not int:
            raise UserError(f"{path}: {name} is {config.get(name)!r}. Expected an id.")
    required = {
        "scale_embedding": (True,),
        "activation_function": tuple(_ACTIVATIONS),
        "decoder_start_token_id": (config["pad_token_id"],),
        "decoder_attention_heads": (config["encoder_attention_heads"],),
        "decoder_ffn_dim": (config["encoder_ffn_dim"],),
        "normalize_before": (False, None),
        "normalize_embedding": (False, None),
        "add_final_layer_norm": (False, None),
        "static_position_embeddings": (True, None),
        "share_encoder_decoder_embeddings": (True, False),
        "tie_word_embeddings": (True, False),
    }
    for name, possible in required.items():
        if config.get(name) not in possible:
            raise UserError(
                f"{path}: {name}={config.get(name)}: the Transformer here has none such. Expected "
                f"{' or '.join(str(value) for value in possible if value is not None)}."
            )
    return config


def _vocabularies(path, config, tokenizer):
    """Returns the MarianVocabulary of either side, equal ones where one serves both."""
    is_separate = tokenizer.get("separate_vocabs") is True
    names = {"source.spm": "vocab.json", "target.spm": "target_vocab.json" if is_separate else "vocab.json"}
    sizes = {"source.spm": config["vocab_size"], "target.spm": config["decoder_vocab_size"]}
    if _shares(config):
        sizes["target.spm"] = config["vocab_size"]
    models, ids, special = {}, {}, {}
    for name, listed in names.items():
        models[name] = files.read_bytes(os.path.join(path, name))
        file = os.path.join(path, listed)
        ids[name] = _read_json(file)
        marian_vocabulary.check_ids(ids[name], sizes[name], file)
        special[name] = _special_ids(config, tokenizer, ids[name], file)

    def side(name, every):
        file = os.path.join(path, name)
        return marian_vocabulary.renumbered(models[name], ids[name], special[name], sizes[name], file, every)

    targets = side("target.spm", every=True)
    if models["source.spm"] == models["target.spm"] and not is_separate and not targets.has_others:
        return targets, targets
    return side("source.spm", every=False), targets


def _special_ids(config, tokenizer, ids, file):
    unknown = tokenizer.get("unk_token", "<unk>")
    unknown = unknown.get("content") if isinstance(unknown, dict) else unknown
    if unknown not in ids:
        raise UserError(f"{file}: has no {unknown!r}, the piece of unknown text. Expected a Marian vocabulary.")
    special = {"pad": config["pad_token_id"], "eos": config["eos_token_id"], "unk": ids[unknown]}
    if len(set(special.values())) < 3:
        raise UserError(f"{file}: padding, end of sentence and unknown have the ids {special}. Expected three.")
    return special


def _embeddings(weights, config, inputs, targets):
    """Returns {"inputs", "targets", "softmax": float32 [our ids, hidden], "bias": float32 [our ids]}."""
    hidden, sizes = config["d_model"], (config["vocab_size"], config["decoder_vocab_size"])
    source, target = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
    if _shares(config):
        sizes = (config["vocab_size"],) * 2
        one = weights.take_any(("model.shared.weight", source, target, "lm_head.weight"), (sizes[0], hidden))
        found = {"inputs": one, "targets": one}
    else:
        found = {
            "inputs": weights.take(source, (sizes[0], hidden)),
            "targets": weights.take_any((target, "lm_head.weight"), (sizes[1], hidden)),
        }
    is_tied = config["tie_word_embeddings"]
    found["softmax"] = found["targets"] if is_tied else weights.take("lm_head.weight", (sizes[1], hidden))
    if found["targets"][config["pad_token_id"]].any():
        raise UserError(
            f"{weights.path}: the embedding of the padding, from which Marian begins to decode, is not zero. "
            "Here decoding begins with the zero vector: this model would translate otherwise."
        )
    bias = weights.take("final_logits_bias", (1, sizes[1]))[0]
    # What is forbidden by -1e9 there would spoil the loss of a fine-tuning, which sums up all logits (smoothing).
    bias = np.maximum(bias[targets.rows], marian.NEVER)
    return {
        "inputs": found["inputs"][inputs.rows],
        "targets": found["targets"][targets.rows],
        "softmax": found["softmax"][targets.rows],
        "bias": np.where(targets.is_unknown, np.float32(marian.NEVER), bias),
    }


def _hparams(config, is_tied):
    dropouts = {
        "layer_prepostprocess_dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "relu_dropout": "activation_dropout",
    }
    return HParams().override_from_dict(
        {
            "hidden_size": config["d_model"],
            "filter_size": config["encoder_ffn_dim"],
            "num_heads": config["encoder_attention_heads"],
            "num_encoder_layers": config["encoder_layers"],
            "num_decoder_layers": config["decoder_layers"],
            "layer_preprocess_sequence": "none",
            "layer_postprocess_sequence": "dan",
            "norm_epsilon": 1e-5,
            "attention_bias": True,
            "softmax_bias": True,
            "ffn_activation": _ACTIVATIONS[config["activation_function"]],
            "shared_embedding_and_softmax_weights": is_tied,
            "pos": "timing",
            "position_layout": "marian",
            **{ours: config[theirs] for ours, theirs in dropouts.items() if theirs in config},
        }
    )


def _shares(config):
    return config["share_encoder_decoder_embeddings"]


class _Weights:
    """The tensors of a folder, each to be taken once."""

    def __init__(self, folder):
        names = ("model.safetensors", "pytorch_model.bin")
        found = [name for name in names if name in _names(folder)]
        if not found:
            raise UserError(f"{folder}: holds neither {' nor '.join(names)}. Expected the folder of a MarianMTModel.")
        self.path = os.path.join(folder, found[0])
        data = files.read_bytes(self.path)
        self._tensors = read_tensors(data, self.path) if found[0] == names[0] else _read_torch(data, self.path)
        self._left = {name for name in self._tensors if not name.endswith(_NOT_LOOKED_AT)}

    def take(self, name, shape):
        """Returns a tensor. Raises `UserError` where it is missing, or has another shape or type."""
        tensor = self._tensors.get(name)
        if tensor is None or tensor.shape != shape or tensor.dtype != "float32":
            found = "missing" if tensor is None else f"{tensor.dtype} {' x '.join(map(str, tensor.shape))}"
            expected = " x ".join(map(str, shape))
            raise UserError(f"{self.path}: {name} is {found}. Expected float {expected}, as config.json has it.")
        self._left.discard(name)
        return tensor

    def take_any(self, names, shape):
        """As `take`, of the first name that is there: which of tied tensors is kept depends on the writer."""
        return self.take(next((name for name in names if name in self._tensors), names[0]), shape)

    def check_all_taken(self):
        """Raises `UserError` for a tensor that has no place in the model."""
        if self._left:
            raise UserError(
                f"{self.path}: {min(self._left)} has no place in the model that config.json describes. Expected the "
                "files of one MarianMTModel."
            )


def _names(folder):
    import tensorflow as tf

    if not tf.io.gfile.isdir(folder):
        raise UserError(f"{folder}: no such folder. Expected that of a MarianMTModel.")
    return tf.io.gfile.listdir(folder)


def _read_torch(data, path):
    """Returns {name: float32 array} of a pytorch_model.bin. PyTorch's reader of tensors alone: no code is run."""
    try:
        import torch
    except ImportError:
        raise UserError(
            f"{path}: is read by PyTorch, which is not installed. Run: pip install 't2t_lite[hugging_face]', or save "
            "the model as model.safetensors."
        ) from None
    try:
        tensors = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        return {str(name): tensor.float().numpy() for name, tensor in tensors.items()}
    except Exception as error:  # a damaged file raises whatever its bytes lead to
        reason = [*str(error).splitlines(), type(error).__name__][0]
        raise UserError(f"{path}: not a file of tensors alone, or damaged: {reason}") from None


def _read_json(path, optional=False):
    import tensorflow as tf

    if optional and not tf.io.gfile.exists(path):
        return {}
    try:
        found = json.loads(files.read_bytes(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: not JSON ({error}). Copy the model's files again.") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: expected a JSON object, found {type(found).__name__}. Copy the model's files again.")
    return found
