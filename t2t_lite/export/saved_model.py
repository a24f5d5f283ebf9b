"""SavedModels that translate text, for stock TensorFlow Serving: nothing but TensorFlow and tensorflow-text inside."""

import os
import re

import tensorflow as tf

from t2t_lite.data.vocabulary import EOS_ID
from t2t_lite.decoding.beam_search import beam_search
from t2t_lite.decoding.full_pass import decodable
from t2t_lite.decoding.options import SearchOptions
from t2t_lite.errors import Failure, UserError

# White space as Python's str.isspace has it, which Translator goes by.
_BLANK = r"[\s\v\x1c-\x1f\x{85}\p{Z}]*"


def export_saved_model(
    translator, export_dir, *, beam_size=4, alpha=0.6, extra_length=50, length_penalty="gnmt", max_input_length=512
):
    """Writes a SavedModel into the next numbered folder of `export_dir`: 1, 2, 3, …

    Signature `serving_default`: `inputs` string [batch] -> `outputs` string [batch], `scores` float32 [batch]
    (log-probability in nats / length penalty) and `truncated` bool [batch] (the text was cut to `max_input_length`).
    It never raises, whatever the bytes: what is not UTF-8 becomes U+FFFD, and a blank gives a blank with score 0. No
    row changes another one.

    The search is traced anew without XLA, which stock TensorFlow Serving refuses on the CPU.

    Args:
        translator: Translator.
        export_dir: str, a folder; made if need be.
        beam_size, alpha, extra_length, length_penalty: see `SearchOptions`; fixed in the export.
        max_input_length: int, longest input in ids, EOS included.

    Returns:
        The path of the numbered folder. It appears when all is written.

    Raises:
        UserError: an option out of range, or a folder that cannot be written.
        Failure: writing failed; nothing is left behind.
    """
    options = SearchOptions(beam_size=beam_size, alpha=alpha, extra_length=extra_length, length_penalty=length_penalty)
    module = _TextTranslation(translator, options, translator.checked_length(max_input_length))
    return _write_version(export_dir, lambda path: tf.saved_model.save(module, path, signatures=module.signatures()))


class _TextTranslation(tf.Module):
    """The exported functions. It tracks the model's variables, not the model: no Python code goes along."""

    def __init__(self, translator, options, max_input_length):
        super().__init__()
        self.weights = [weight.value for weight in translator.model.weights]
        self.resources = [resource for encoder in translator.encoders.values() for resource in encoder.tf_resources]
        self._translate = _text_function(translator, options, max_input_length)

    def signatures(self):
        """Returns {name of the signature: concrete function}."""

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="inputs")], autograph=False)
        def serving_default(inputs):
            return self._translate(inputs)

        return {"serving_default": serving_default}


def _text_function(translator, options, max_input_length):
    """Returns a function of string [batch] that gives {"outputs", "scores", "truncated"}, all [batch]."""
    model = decodable(translator.model)
    encoder, decoder = translator.encoders["inputs"], translator.encoders["targets"]
    longest_output = translator.hparams.max_position if translator.hparams.pos == "emb" else None

    def translate(inputs):
        text = tf.strings.unicode_transcode(inputs, "UTF-8", "UTF-8", errors="replace")
        pieces = encoder.tf_encode(text)  # ragged [batch, (length)]
        lengths = tf.cast(pieces.row_lengths(), tf.int32)
        is_blank = tf.strings.regex_full_match(text, _BLANK) | (lengths == 0)
        kept = tf.where(is_blank, 0, tf.minimum(lengths, max_input_length - 1))
        sources = _with_eos(pieces, kept)
        limit = kept + 1 + options.extra_length
        if longest_output is not None:
            limit = tf.minimum(limit, longest_output)
        found = beam_search(
            model,
            sources,
            tf.where(is_blank, 0, limit),
            beam_size=options.beam_size,
            alpha=options.alpha,
            length_penalty=options.length_penalty,
        )
        return {
            "outputs": tf.where(is_blank, "", decoder.tf_decode(found.ids[:, 0])),
            "scores": tf.where(is_blank, 0.0, found.scores[:, 0]),
            "truncated": ~is_blank & (lengths > max_input_length - 1),
        }

    return translate


def _with_eos(pieces, kept):
    """Ragged int32 [batch, (length)] and int32 [batch] -> int32 [batch, width]: so many of each row, EOS, then 0."""
    width = tf.reduce_max(tf.concat([kept, [0]], 0)) + 1  # at least 1, in an empty batch too
    ids = pieces.to_tensor(0, shape=[None, None])[:, :width]
    ids = tf.pad(ids, [[0, 0], [0, width - tf.shape(ids)[1]]])
    position = tf.range(width)[None]
    ids = tf.where(position < kept[:, None], ids, 0)
    return tf.where(position == kept[:, None], EOS_ID, ids)


def _write_version(export_dir, write):
    """Calls `write` with a temporary folder, which then becomes `<export_dir>/<highest number + 1>`."""
    try:
        tf.io.gfile.makedirs(export_dir)
        names = [name.rstrip("/") for name in tf.io.gfile.listdir(export_dir)]
    except tf.errors.OpError as error:
        raise UserError(f"{export_dir}: not a folder that can be written: {str(error).splitlines()[0]}") from None
    version = max((int(name) for name in names if re.fullmatch(r"\d+", name)), default=0) + 1
    path = os.path.join(export_dir, str(version))
    temporary = os.path.join(export_dir, f"{version}.incomplete")  # not a number: a server does not look at it
    try:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        write(temporary)
        tf.io.gfile.rename(temporary, path)
    except (tf.errors.OpError, OSError) as error:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        raise Failure(f"{path}: could not be written: {str(error).splitlines()[0]}") from error
    return path
