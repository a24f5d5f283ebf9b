"""The functions of a translation model's export, and its warm-up requests. Only stock TensorFlow operations are used.

Inputs may be any bytes: invalid UTF-8 becomes U+FFFD, and long texts are truncated. The only errors are wrong numbers
of targets in `score`, and of options in `with_options`. Rows do not influence one another. The first axis of all
outputs is the batch, as required for batching on a server.
"""

import dataclasses
import functools
import json
import os

import numpy as np
import tensorflow as tf

from t2t_lite.corpora.sentences import SENTENCES
from t2t_lite.decoding.scoring import log_probs_of_targets
from t2t_lite.decoding.search.adapters import refuse, searches
from t2t_lite.decoding.search.beam_search import beam_search
from t2t_lite.decoding.search.rules import rules_of, text_tables
from t2t_lite.decoding.sentence_parts import is_natural, splits_sentences
from t2t_lite.decoding.texts import check_options
from t2t_lite.settings.ranges import ALPHA
from t2t_lite.settings.search_options import SearchOptions, kept_settings
from t2t_lite.text.reading_graph import as_many, blanked, longest_input, reader, texts_spec
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

LARGEST_EXTRA_LENGTH = 512  # the most that a call may set, unless the export itself has more
_IDS = tf.TensorSpec([None, None], tf.int32)
SEARCHED = (_IDS, tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32))  # ids, limits and alphas
_TABLE = """\
| signature | inputs | outputs |
|---|---|---|
| `serving_default` | `inputs` string [batch] | `outputs` string, `scores` float32, `truncated` bool, all [batch] |
| `with_options` | also `alpha` float32, `extra_length` int32: one value, or one per row | as `serving_default` |
| `n_best` | `inputs` | `outputs`, `scores` [batch, {beam_size}], best first; `truncated` |
| `tokens` | `inputs` | as `serving_default`, and `tokens`, `ids`, `input_tokens`, `input_ids` [batch, length] |
| `score` | `inputs`, `targets` string [batch] | `scores`, `lengths`, `truncated`; `token_scores` [batch, length] |
"""
_SENTENCES = """\
| `sentences` | the same | the same; translates only the first sentence: the model was trained on single sentences |
"""
PATH = os.path.join("assets.extra", "tf_serving_warmup_requests")
_WIDTHS = (6, 10, 16)  # numbers of pieces in the warm-up texts
# Number of positions that are computed at a time. The logits of a position need 4 bytes per entry of the vocabulary.
_POSITIONS = 2048


class TextSignatures:
    """Builds the signatures of a translation model's export; see `t2t_lite.export.by_task`.

    The searches are traced without XLA, which stock TensorFlow Serving refuses on the CPU. All signatures share two
    searches, one for the best output and one for the n best outputs.

    Args:
        translator: Translator.
        max_input_length: int, the maximum length of an input in ids, EOS included. For the default see `longest_input`.
            If inputs and targets share the model's positions (`joins_inputs`), the targets to score get the remaining
            positions.
        **search: the `SETTINGS` of `SearchOptions`. The defaults are `Problem.decode_defaults`. Beam size and length
            penalty are fixed in the export; alpha and extra_length are defaults, which callers may override.

    Raises:
        UserError: a number is out of range.
    """

    SETTINGS = ("beam_size", "alpha", "extra_length", "length_penalty", "ends", "banned_texts")
    HAS_FEATURES = False

    def __init__(self, translator, max_input_length, **search):
        if searches(translator.model):
            refuse(translator.model, "an export", "Use t2t-decoder or t2t_lite.load.")
        check_options(search, self.SETTINGS, "export_saved_model")
        defaults = translator.problem.decode_defaults if translator.problem else {}
        self._options = options = SearchOptions(**{**defaults, **search})
        self.settings = kept_settings(options, self.SETTINGS)
        self._joins_inputs, most = translator.searcher.joins_inputs, translator.max_input_length
        # If inputs and outputs share positions, the default is to reserve half of the positions for inputs.
        longest = longest_input(max_input_length, (most + 1) // 2 if self._joins_inputs else most)
        self.max_input_length = max_input_length = translator.checked_length(longest)
        self._wants_sentences = splits_sentences("auto", translator.problem, translator.run and translator.run.config)
        self._model = translator.searcher.model
        self._whole_model = translator.model
        self.encoders = translator.encoders
        self._longest = {"inputs": max_input_length, "targets": max_input_length}
        self._longest_output = translator.searcher.max_length
        if self._longest_output:
            self._longest["targets"] = self._longest_output - (max_input_length if self._joins_inputs else 0)
        self._searches = {
            n_best: tf.function(functools.partial(self._search, n_best), input_signature=SEARCHED, autograph=False)
            for n_best in {1, options.beam_size}
        }
        strips = is_natural(translator.problem)
        self.readers = {side: reader(self.encoders[side], self._longest[side], strips) for side in self._longest}
        self._decode = tf.function(self.encoders["targets"].tf_decode, input_signature=[_IDS], autograph=False)

    def functions(self):
        """Returns {name of a signature: tf.function}, as docs/serving.md lists them."""
        specs = {
            "serving_default": [texts_spec()],
            "with_options": [
                texts_spec(),
                tf.TensorSpec(None, tf.float32, name="alpha"),
                tf.TensorSpec(None, tf.int32, name="extra_length"),
            ],
            "n_best": [texts_spec()],
            "tokens": [texts_spec()],
            "score": [texts_spec(), tf.TensorSpec([None], tf.string, name="targets")],
        }
        functions = {
            name: tf.function(getattr(self, name), input_signature=spec, autograph=False)
            for name, spec in specs.items()
        }
        return functions | ({SENTENCES: functions["serving_default"]} if self._wants_sentences else {})

    def warmup(self):
        """Returns warm-up calls, a list of (signature, {name: array}), which depends only on the vocabulary."""
        texts = sample_texts(self.encoders["inputs"], self.max_input_length)
        # Use few and short requests, since the server answers them before any others. Options have one value per text,
        # since a server with --enable_batching refuses scalars, and a refused warm-up request aborts loading the model.
        options = {"alpha": np.float32([SearchOptions.alpha]), "extra_length": np.int32([0])}
        sentence_requests = [(SENTENCES, {"inputs": texts[:1]})] if self._wants_sentences else []
        return [
            *sentence_requests,
            ("with_options", {"inputs": texts[:1], **options}),
            ("tokens", {"inputs": texts[:1]}),
            ("n_best", {"inputs": texts[:1]}),
            ("score", {"inputs": texts[:1], "targets": texts[:1]}),
            ("serving_default", {"inputs": texts[:1]}),
            ("serving_default", {"inputs": texts}),
        ]

    def card(self):
        """Returns ({title: text}, table of the signatures in Markdown) for the model card."""
        o = self._options
        search = (
            f"beam {o.beam_size}, alpha {o.alpha:g} ({o.length_penalty}), ends {o.ends}, at most the input's length + "
            f"{o.extra_length} pieces; inputs are truncated to {self.max_input_length} pieces"
        )
        search += f"; never {', '.join(map(json.dumps, o.banned_texts))}" if o.banned_texts else ""
        table = _TABLE.format(beam_size=o.beam_size)
        return {"search": search}, table + (_SENTENCES if self._wants_sentences else "")

    def serving_default(self, inputs):
        """Translates string [batch]; returns {"outputs" string, "scores" float32, "truncated" bool}, all [batch].

        A score is the output's log-probability (nats) / length penalty. The output of a blank text is blank and has the
        score 0.
        """
        return self._best(inputs, self._options.alpha, self._options.extra_length)

    def with_options(self, inputs, alpha, extra_length):
        """Like `serving_default`; alpha float32 and extra_length int32 are scalars, or [batch], one value per row.

        For alpha see `callers_alpha`. extra_length is clipped to the range 0 to 512, or up to the export's own value if
        that is larger.
        """
        most = max(LARGEST_EXTRA_LENGTH, self._options.extra_length)
        alpha = callers_alpha(alpha, self._options.alpha)
        return self._best(inputs, alpha, tf.clip_by_value(extra_length, 0, most))

    def n_best(self, inputs):
        """Translates string [batch]; returns {"outputs" string and "scores" float32, both [batch, beam size];
        "truncated" bool [batch]}.

        The best output comes first. If fewer hypotheses finished, the remaining outputs are "", and their scores are
        the lowest float32.
        """
        sources, read = self.read_inputs(inputs)
        beam_size = self._options.beam_size
        results = self._search_results(sources, self._options.alpha, self._options.extra_length, beam_size)
        texts = self.texts(tf.reshape(results["ids"], (-1, tf.shape(results["ids"])[2])), read, beam_size)
        is_there = (results["scores"] != -float("inf")) & ~sources.is_blank[:, None]
        scores = tf.where(is_there, results["scores"], tf.float32.min)
        is_first = tf.range(beam_size) == 0
        unchanged = tf.where(is_first, self.unchanged(read)[..., None], "")
        return {
            "outputs": tf.where(is_there, tf.reshape(texts, tf.shape(scores)), unchanged),
            "scores": tf.where(sources.is_blank[:, None] & is_first, 0.0, scores),
            "truncated": sources.truncated,
        }

    def tokens(self, inputs):
        """Like `serving_default`, but also returns the pieces of the outputs and of the inputs.

        "tokens" string and "ids" int32, both [batch, length], are the pieces of the outputs; "input_tokens" and
        "input_ids" are the pieces of the inputs. Rows have no EOS and are padded with "" or 0.
        """
        sources, read = self.read_inputs(inputs)
        results = self._search_results(sources, self._options.alpha, self._options.extra_length)
        outputs = tf.where(sources.is_blank[:, None] | (results["ids"][:, 0] == EOS_ID), PAD_ID, results["ids"][:, 0])
        lengths = tf.math.count_nonzero(outputs, axis=1, dtype=tf.int32)
        outputs = outputs[:, : tf.reduce_max(tf.concat([lengths, [0]], 0))]
        inputs = tf.where(sources.ids == EOS_ID, PAD_ID, sources.ids)[:, :-1]
        return {
            **self._answers(sources, read, results),
            "tokens": self._pieces("targets", outputs),
            "ids": outputs,
            "input_tokens": self._pieces("inputs", inputs),
            "input_ids": inputs,
        }

    def score(self, inputs, targets):
        """Scores pairs of texts; returns {"scores" float32, "lengths" int32, "truncated" bool}, all [batch].

        A score is the log-probability (nats) of a target given its source, EOS included. It is the sum of the row's
        "token_scores" float32 [batch, longest length], which are padded with 0; "lengths" are the numbers of terms. No
        search is run. If the numbers of inputs and targets differ, the call fails with the error InvalidArgument.
        """
        inputs, targets = self.pairs(*as_many(inputs=inputs, targets=targets))
        sources, targets = self.readers["inputs"](inputs), self.readers["targets"](targets)
        scores = scores_of_targets(self._whole_model, sources.ids, targets.ids, targets.lengths + 1)
        return {**scores, "truncated": sources.truncated | targets.truncated}

    def _best(self, inputs, alpha, extra_length):
        sources, read = self.read_inputs(inputs)
        return self._answers(sources, read, self._search_results(sources, alpha, extra_length))

    # Methods that the signatures of a problem with a `substitution` override.

    def read_inputs(self, inputs):
        """Encodes inputs; returns (`Sources`, in which a blank text is only EOS; the value of `read` for `texts`)."""
        return blanked(self.readers["inputs"](inputs)), None

    def pairs(self, inputs, targets):
        """Returns the inputs and targets to encode, both string [batch]."""
        return inputs, targets

    def texts(self, ids, read, n_best=1):
        """Decodes ids int32 [batch * n_best, length] to texts, string [batch * n_best]."""
        return self._decode(ids)

    def unchanged(self, read):
        """Returns the outputs for blank sources, string [batch] or []."""
        return tf.constant("")

    def _answers(self, sources, read, results):
        return {
            "outputs": tf.where(sources.is_blank, self.unchanged(read), self.texts(results["ids"][:, 0], read)),
            "scores": tf.where(sources.is_blank, 0.0, results["scores"][:, 0]),
            "truncated": sources.truncated,
        }

    def _search_results(self, sources, alpha, extra_length, n_best=1):
        """Runs a search and returns its results; alpha and extra_length are numbers or tensors, [] or [batch]."""
        limit = sources.lengths + 1 + extra_length
        if self._longest_output is not None:
            room = self._longest_output - (sources.lengths + 1 if self._joins_inputs else 0)
            limit = tf.minimum(limit, room)
        limit = tf.where(sources.is_blank, 0, limit)
        return self._searches[n_best](sources.ids, limit, tf.broadcast_to(alpha, tf.shape(limit)))

    def _search(self, n_best, ids, limit, alpha):
        options = dataclasses.replace(self._options, n_best=n_best)
        rules = rules_of(options, **text_tables(self.encoders["targets"], options))
        results = beam_search(self._model, ids, limit, options, alpha=alpha, rules=rules)
        return {"ids": results.ids, "scores": results.scores}

    def _pieces(self, side, ids):
        """Returns the pieces of ids int32 [batch, length] as string [batch, length], with "" for padding."""
        encoder = self.encoders[side]
        names = tf.constant(["", *encoder.pieces(range(1, encoder.vocab_size))])
        return tf.gather(names, ids)


def callers_alpha(alpha, own):
    """Returns a caller's alpha, clipped to the range 0 to 5, or the export's own alpha if the caller's is NaN."""
    return tf.clip_by_value(tf.where(tf.math.is_nan(alpha), own, alpha), 0.0, float(ALPHA.most))


def write_warmup(export, calls, model_name):
    """Writes `assets.extra/tf_serving_warmup_requests`, a few calls of every signature.

    Args:
        export: str, the export's folder.
        calls: list of (signature, {name: array}).
        model_name: str, the model's name in the requests.
    """
    path = os.path.join(export, PATH)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.TFRecordWriter(path) as writer:
        for signature, inputs in calls:
            writer.write(prediction_log(model_name, signature, inputs))


def prediction_log(model_name, signature, inputs):
    """Encodes a request as TensorFlow Serving's protocol buffer `PredictionLog`; returns bytes.

    The few fields that a request needs are encoded here, so that an export does not need the package
    tensorflow-serving-api. The field numbers are those in prediction_log.proto, predict.proto and model.proto.

    Args:
        model_name, signature: str.
        inputs: {name: array}.
    """
    model_spec = _field(1, model_name.encode()) + _field(3, signature.encode())
    request = _field(1, model_spec)
    for name, value in sorted(inputs.items()):
        request += _field(2, _field(1, name.encode()) + _field(2, tf.make_tensor_proto(value).SerializeToString()))
    return _field(6, _field(1, request))  # the field predict_log of PredictionLog contains the field request


def _field(number, content):
    """Encodes a field of a protocol buffer, whose value is a text, bytes or a message."""
    tag, size, length = bytes([number << 3 | 2]), len(content), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return tag + length + bytes([size]) + content


def sample_texts(encoder, max_input_length):
    """Returns texts of increasing length, made from pieces sampled from the whole vocabulary."""
    random = np.random.default_rng(0)
    first = min(encoder.num_reserved_ids, encoder.vocab_size - 1)
    draw = [random.integers(first, encoder.vocab_size, min(width, max_input_length)) for width in _WIDTHS]
    return [encoder.decode(ids).encode() for ids in draw]


def scores_of_targets(model, sources, targets, lengths):
    """Returns the log-probabilities (nats) of targets, computed a few rows at a time to save memory.

    Args:
        model: see `log_probs_of_targets`.
        sources: int32 [batch, S], or None for a language model.
        targets: int32 [batch, T].
        lengths: int32 [batch], the number of ids to score in each target.

    Returns:
        {"scores" float32 [batch], the sums; "lengths", the argument; "token_scores" float32 [batch, T], padded with 0}.
    """
    width = tf.shape(targets)[1]
    rows = tf.maximum(1, _POSITIONS // (width if sources is None else tf.maximum(width, tf.shape(sources)[1])))

    def score_rows(at, log_probs):
        rows_of_sources = None if sources is None else sources[at : at + rows]
        return at + rows, tf.concat(
            [log_probs, log_probs_of_targets(model, rows_of_sources, targets[at : at + rows])], 0
        )

    _, log_probs = tf.while_loop(
        lambda at, log_probs: at < tf.shape(targets)[0], score_rows, (tf.constant(0), tf.zeros((0, width))),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, None])),
    )  # fmt: skip
    log_probs = tf.where(tf.range(width) < lengths[:, None], log_probs, 0.0)
    return {"scores": tf.reduce_sum(log_probs, 1), "lengths": lengths, "token_scores": log_probs}
