"""Exports to CTranslate2 by copying our weights into its model specification; needs neither PyTorch nor a tokenizer."""

import numpy as np
from keras import ops

from t2t_lite import registry
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError, needs
from t2t_lite.export import formats
from t2t_lite.export.by_task import added_files
from t2t_lite.export.formats import Format
from t2t_lite.extras.ctranslate2.quantizations import QUANTIZATIONS
from t2t_lite.extras.hugging_face.marian_vocabulary import sentencepiece_models, unique_pieces
from t2t_lite.extras.hugging_face.named_weights import array_of
from t2t_lite.files import folders
from t2t_lite.layers.attention_kinds import kinds_of
from t2t_lite.models.transformer import Transformer
from t2t_lite.text.vocabulary import EOS_ID, UNK_ID

_ANY_SIZE = ("hidden_size", "filter_size", "num_heads", "num_encoder_layers", "num_decoder_layers", "max_position")
_EITHER = (False, True)
# The projections whose outputs each linear layer of CTranslate2's attention concatenates.
_OF_SELF_ATTENTION = (("query", "key", "value"), ("output",))
_OF_CROSS_ATTENTION = (("query",), ("key", "value"), ("output",))
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH", "swiglu": "SWISH"}
# Number of rows in the sinusoid table, enough for the longest input (1024) and its longest output (50 more).
_SINUSOIDS = 2048


@registry.register_export_format("ctranslate2")
def ctranslate2():
    """Returns the Format of CTranslate2."""
    return Format("CTranslate2", Transformer, _supported)


def _relative_options(config):
    """Returns the options for relative positions if all self-attention layers use them, otherwise None."""
    (name, options), *others = kinds_of(config["self_attention"])
    return options if name == "dot_product_relative" and "pattern" not in options and not others else None


def _supported(config):
    relative = _relative_options(config)
    is_relative = relative is not None
    size = config["hidden_size"] // config["num_heads"]
    key_size, value_size = config["key_dim"] or size, config["value_dim"] or size
    # In CTranslate2, relative positions replace all other positions, and always apply to values as well as keys.
    self_attention = {"type": "dot_product_relative", **(relative or {}), "add_relative_to_values": True}
    return {
        **dict.fromkeys((*_ANY_SIZE, "norm", "norm_epsilon", "position_layout", "key_dim")),
        "self_attention": (self_attention,) if is_relative else ("dot_product",),
        "attention_bias": _EITHER,
        "activation": (*_ACTIVATIONS,),
        "tie_embeddings": _EITHER,
        "softmax_bias": _EITHER,
        "value_dim": None if key_size == value_size else (key_size,),  # CTranslate2 uses one size for keys and values
        "position": ("none",) if is_relative else ("sinusoidal", "learned", "none"),
        "target_space_embedding": (False,) if is_relative else _EITHER,
    }


def export_ctranslate2(
    translator: Translator, path: str, quantization: str = "float32", *, license: str = "", command: str = ""
) -> str:
    """Writes a folder for `ctranslate2.Translator`, with the SentencePiece models and a README.

    CTranslate2's beam search with `length_penalty=0` equals ours with `alpha=0, ends="top"`; other penalties are
    defined differently. CTranslate2 appends EOS to the pieces that the caller passes.

    Args:
        translator: Translator of a single Transformer.
        path: str, a new or empty folder.
        quantization: str, the type in which weights are stored: "int8" (for int8 products on CPUs), "int16", "float16",
            "bfloat16" or "float32". The program that loads the folder may compute in another type (`compute_type`).
        license: str, the model's licence for the README, or "" if not stated.
        command: str, the export command for the README, or "".

    Returns:
        `path`. The folder appears only when it is complete.

    Raises:
        UserError: the model is an ensemble or not a Transformer; it has options that CTranslate2 lacks (the message
            lists all of them); the folder is not empty; the quantization is unknown; or ctranslate2 is not installed.
        Failure: writing failed; nothing is left behind.
    """
    if quantization not in QUANTIZATIONS:
        raise UserError(f"--quantization={quantization}: expected one of {', '.join(QUANTIZATIONS)}.")
    formats.check("ctranslate2", translator)
    folders.check_new(path)
    tokens = {side: unique_pieces(encoder) for side, encoder in translator.encoders.items()}
    spec = model_spec(translator.model, tokens)
    spec.validate()
    _convert_without_torch(spec)
    spec.optimize(quantization=quantization)

    models = sentencepiece_models(translator.encoders)
    added = added_files(
        translator,
        title="A translation model for CTranslate2",
        library="ctranslate2",
        body=(_USE_SENTENCEPIECE if models else _USE_TOKENS) + _LIMITS,
        license=license,
        command=command,
        rows={"weights": f"stored as {quantization}"},
    )

    def write(folder):
        spec.save(folder)
        for name, content in (models | added).items():
            folders.write_file(folder, name, content)

    return folders.write_folder(path, write)


def model_spec(model, tokens):
    """Returns the `ctranslate2.specs.TransformerSpec` that is equivalent to a Transformer.

    Args:
        model: Transformer, which must be built.
        tokens: {"inputs": list of str, "targets": list of str}, the distinct pieces of each vocabulary in the order of
            ids.

    Raises:
        UserError: the model has options that CTranslate2 lacks (all are listed), or ctranslate2 is not installed.
    """
    formats.check_model("ctranslate2", model)
    config = model.config
    with needs("CTranslate2", "ctranslate2", "this export"):
        from ctranslate2.specs.common_spec import Activation
        from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec

    options = {
        "num_heads": config["num_heads"],
        "pre_norm": config["norm"] == "pre",
        "activation": getattr(Activation, _ACTIVATIONS[config["activation"]]),
        "ffn_glu": config["activation"] == "swiglu",
        "relative_position": _relative_options(config) is not None,
        "head_dim": config["key_dim"],  # None means hidden_size / num_heads
    }
    spec = TransformerSpec(
        TransformerEncoderSpec(config["num_encoder_layers"], **options),
        TransformerDecoderSpec(config["num_decoder_layers"], **options),
    )
    spec.decoder.start_from_zero_embedding = True
    # We embed padding as zero, whatever its row contains, and CTranslate2 never looks up this row. It can thus be
    # exported unchanged, so that CTranslate2 stores tied weights only once.
    spec.encoder.embeddings[0].weight = array_of(model.input_embedding.embeddings)
    spec.decoder.embeddings.weight = array_of(model.target_embedding.embeddings)
    spec.decoder.projection.weight = array_of(model.softmax.embeddings)
    if config["softmax_bias"]:
        spec.decoder.projection.bias = array_of(model.softmax.bias)
    for side, position in ((spec.encoder, model.encoder_position), (spec.decoder, model.decoder_position)):
        side.scale_embeddings = True
        if not options["relative_position"]:  # CTranslate2 cannot combine relative positions with others
            side.position_encodings.encodings = _positions(position, config)
    if config["target_space_embedding"]:  # a vector added at every position
        spec.encoder.position_encodings.encodings += array_of(model.target_space)
    for layer, theirs in zip(model.encoder.layers, spec.encoder.layer, strict=True):
        _fill_attention(layer.self_attention, theirs.self_attention, _OF_SELF_ATTENTION)
        _fill_feed_forward(layer.feed_forward, theirs.ffn)
    for layer, theirs in zip(model.decoder.layers, spec.decoder.layer, strict=True):
        _fill_attention(layer.self_attention, theirs.self_attention, _OF_SELF_ATTENTION)
        _fill_attention(layer.cross_attention, theirs.attention, _OF_CROSS_ATTENTION)
        _fill_feed_forward(layer.feed_forward, theirs.ffn)
    if config["norm"] == "pre":
        _fill_norm(model.encoder_norm, spec.encoder.layer_norm)
        _fill_norm(model.decoder_norm, spec.decoder.layer_norm)
    spec.register_source_vocabulary(tokens["inputs"])
    spec.register_target_vocabulary(tokens["targets"])
    spec.config.unk_token, spec.config.bos_token = tokens["targets"][UNK_ID], tokens["targets"][0]
    spec.config.eos_token = spec.config.decoder_start_token = tokens["targets"][EOS_ID]
    spec.config.add_source_bos, spec.config.add_source_eos = False, True
    spec.config.layer_norm_epsilon = config["norm_epsilon"]
    return spec


def _positions(layer, config):
    """Returns the position table, float32 [positions, hidden]; it is zero for a model without positions."""
    if config["position"] == "learned":
        return array_of(layer.table)
    if config["position"] == "none":
        return np.zeros((_SINUSOIDS, config["hidden_size"]), "float32")
    return array_of(layer.encode(ops.arange(_SINUSOIDS)))


def _fill_attention(residual, theirs, projections):
    attention = residual.layer
    for number, roles in enumerate(projections):
        _fill_dense([getattr(attention, f"{role}_projection") for role in roles], theirs.linear[number])
    _fill_norm(residual.normalization, theirs.layer_norm)
    if hasattr(theirs, "relative_position_keys"):
        theirs.relative_position_keys = array_of(attention.key_table)
        theirs.relative_position_values = array_of(attention.value_table)


def _fill_feed_forward(residual, theirs):
    _fill_dense([residual.layer.inner], theirs.linear_0)
    _fill_dense([residual.layer.outer], theirs.linear_1)
    if hasattr(theirs, "linear_0_noact"):
        _fill_dense([residual.layer.gate], theirs.linear_0_noact)
    _fill_norm(residual.normalization, theirs.layer_norm)


def _fill_dense(layers, theirs):
    """Concatenates the outputs of projections into one projection, stored as [outputs, inputs]."""
    theirs.weight = np.ascontiguousarray(np.concatenate([array_of(layer.kernel) for layer in layers], axis=1).T)
    if layers[0].use_bias:
        theirs.bias = np.concatenate([array_of(layer.bias) for layer in layers])


def _fill_norm(norm, theirs):
    theirs.gamma, theirs.beta = array_of(norm.gamma), array_of(norm.beta)


def _convert_without_torch(spec):
    """Makes a spec convert to bfloat16 with NumPy and ml_dtypes, because CTranslate2 would need PyTorch."""
    import ml_dtypes
    from ctranslate2.specs import model_spec as theirs

    class Array(theirs.NumpyVariable):
        """A variable of CTranslate2 whose type conversion does not need PyTorch."""

        def _to(self, dtype):
            self.array = self.array.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype))
            return self

    def replace(owner, name, value):
        if isinstance(value, theirs.NumpyVariable):
            setattr(owner, name.rpartition("/")[2], Array(value.array))

    theirs.visit_spec(spec, replace)


_LIMITS = """
`length_penalty=0` equals the search of t2t_lite with `alpha=0`. With `length_penalty=1` (the default), scores are
divided by the length instead of t2t_lite's ((5 + length) / 6)^alpha. `compute_type="int8"` computes in int8 whatever
the type of the stored weights. Inputs are truncated after `max_input_length` (1024 pieces), and outputs after
`max_decoding_length` (256).
"""
_USE_SENTENCEPIECE = """```bash
pip install ctranslate2 sentencepiece
```

```python
import ctranslate2
import sentencepiece

source = sentencepiece.SentencePieceProcessor("source.spm")
target = sentencepiece.SentencePieceProcessor("target.spm")
translator = ctranslate2.Translator(".", device="cpu")  # or "cuda"
pieces = [source.encode(text, out_type=str) for text in ["The first sentence.", "The second one."]]
for result in translator.translate_batch(pieces, beam_size=4, length_penalty=0):
    print(target.decode(result.hypotheses[0]))
```

CTranslate2 adds the end-of-sentence token to the inputs.
"""
_USE_TOKENS = """The tokens are the entries of `shared_vocabulary.json`, or of `source_vocabulary.json` and
`target_vocabulary.json`. `ctranslate2.Translator(".").translate_batch([["a", "b"]], beam_size=4, length_penalty=0)`
translates lists of tokens. CTranslate2 adds the end-of-sentence token to the inputs.
"""
