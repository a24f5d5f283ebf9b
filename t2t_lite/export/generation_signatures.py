"""The functions of a language model's export, which map texts to texts.

They use only the operations of stock TensorFlow and tensorflow-text.

Inputs may be any bytes: invalid UTF-8 becomes U+FFFD. The model reads only the end of a long prompt, and only the
beginning of a long text to be scored. Rows do not influence one another.
"""

import json
import re

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.search.beam_search import beam_search
from t2t_lite.decoding.search.rules import CONTINUES, rules_of, text_tables
from t2t_lite.decoding.search.sampling import sample
from t2t_lite.decoding.texts import check_options
from t2t_lite.export.signatures import LARGEST_EXTRA_LENGTH, SEARCHED, callers_alpha, sample_texts, scores_of_targets
from t2t_lite.settings.ranges import NEW_TOKENS, Range, typed_value
from t2t_lite.settings.search_options import SearchOptions, kept_settings
from t2t_lite.text.reading_graph import beginnings, encoding, longest_input, texts_spec, valid
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

_ANY_LENGTH = 2**16
_TABLE = """\
| signature | inputs | outputs |
|---|---|---|
| `serving_default` | `inputs` string [batch] | `outputs` string, `scores` float32, `truncated` bool, all [batch] |
| `generate` | the same | the same |
| `with_options` | also {option} and `extra_length` int32: one value, or one per row | as `serving_default` |
| `score` | `inputs` string [batch] | `scores`, `lengths`, `truncated`; `token_scores` [batch, length] |
"""


class GenerationSignatures:
    """Builds the signatures of a language model's export; see `t2t_lite.export.by_task`.

    The search, or the sampling, is traced without XLA, which stock TensorFlow Serving refuses on the CPU.

    Args:
        generator: Generator.
        max_input_length: int, the maximum length of a text in ids. The default is 512, or the model's maximum if it is
            smaller.
        **search: the `SETTINGS` of `SearchOptions`. They are fixed in the export, except for those that are inputs of
            `with_options`. The defaults are `Problem.decode_defaults`. extra_length is the maximum length of a
            continuation in ids, EOS included. If all examples have the same length, as images do, a continuation
            completes the example instead.

    Raises:
        UserError: a number is out of range.
    """

    SETTINGS = (
        "beam_size", "alpha", "extra_length", "length_penalty", "ends", "no_repeat_ngram_size", "repetition_penalty",
        "stop", "banned_texts", "sampling", "temperature", "top_k", "top_p", "seed",
    )  # fmt: skip
    HAS_FEATURES = False

    def __init__(self, generator, max_input_length, **search):
        check_options(search, self.SETTINGS, "export_saved_model")
        problem = generator.problem
        self._whole = problem and problem.example_length(generator.encoders)  # number of ids in each example, or None
        defaults = dict(problem.decode_defaults) if problem else {}
        self._options = SearchOptions(**{**defaults, **search})
        # Maximum number of ids in a continuation. With 0, which translations may have, every output would be empty.
        self._longest = self._whole or typed_value("extra_length", self._options.extra_length, int, NEW_TOKENS)
        self.settings = kept_settings(self._options, self.SETTINGS)
        self._positions = generator.max_length  # maximum number of ids in prompt and continuation, or None
        most = _ANY_LENGTH if self._positions is None else self._positions - 1
        longest = longest_input(max_input_length, most)
        self.max_input_length = typed_value("max_input_length", longest, int, Range(1, most))
        self._model, self._whole_model = generator.searcher.model, generator.model
        self._encoder = generator.encoders["targets"]
        self._tables = text_tables(self._encoder, self._options)
        # All signatures share this function, since it contains the whole vocabulary file as a constant.
        self._read = encoding(self._encoder)
        seeds = tf.TensorSpec([None, 2], tf.int32)
        self._continued = tf.function(self._search, input_signature=[*SEARCHED, seeds], autograph=False)

    def functions(self):
        """Returns {name of a signature: tf.function}, as docs/serving.md lists them."""
        option = tf.TensorSpec(None, *((tf.int32, "seed") if self._options.sampling else (tf.float32, "alpha")))
        generate = tf.function(self.generate, input_signature=[texts_spec()], autograph=False)
        options = [texts_spec(), option, tf.TensorSpec(None, tf.int32, name="extra_length")]
        with_options = self.with_seed if self._options.sampling else self.with_alpha
        return {
            "serving_default": generate,
            "generate": generate,
            "with_options": tf.function(with_options, input_signature=options, autograph=False),
            "score": tf.function(self.score, input_signature=[texts_spec()], autograph=False),
        }

    def generate(self, inputs):
        """Continues texts, string [batch]; returns {"outputs" string, "scores" float32, "truncated" bool}, all [batch].

        Outputs are the continuations without the prompts. The score of a sample is its log-probability (nats); the
        score of any other output is its log-probability / length penalty. A sample depends only on the prompt's bytes
        and the export's seed.
        """
        return self._generate(inputs, self._options.alpha, self._options.seed, self._longest)

    def with_alpha(self, inputs, alpha, extra_length):
        """Like `generate`; alpha float32 and extra_length int32 are scalars, or [batch], one value per row.

        For alpha see `callers_alpha`. extra_length is clipped to the range 1 to 512, or up to the export's own value if
        that is larger.
        """
        alpha = callers_alpha(alpha, self._options.alpha)
        return self._generate(inputs, alpha, self._options.seed, self._clipped(extra_length))

    def with_seed(self, inputs, seed, extra_length):
        """Like `generate`; seed and extra_length int32 are scalars or [batch]. See `with_alpha`."""
        return self._generate(inputs, self._options.alpha, seed, self._clipped(extra_length))

    def score(self, inputs):
        """Scores texts, string [batch]; returns {"scores" float32, "lengths" int32, "truncated" bool}, all [batch].

        A score is the log-probability (nats) of the text's ids without EOS; "lengths" are the numbers of these ids.
        "token_scores" float32 [batch, longest length] are the terms of these sums, padded with 0.
        """
        texts, is_cut = beginnings(valid(inputs), self.max_input_length)
        pieces = self._read(texts)
        ids = _dense(pieces[:, : self.max_input_length])
        lengths = tf.cast(pieces.row_lengths(), tf.int32)
        num_ids = tf.minimum(lengths, self.max_input_length)
        return {**scores_of_targets(self._whole_model, None, ids, num_ids), "truncated": is_cut | (lengths > num_ids)}

    def warmup(self):
        """Returns warm-up calls, a list of (signature, {name: array}), which depends only on the vocabulary."""
        texts = sample_texts(self._encoder, self.max_input_length)
        option = {"seed": np.int32([0])} if self._options.sampling else {"alpha": np.float32([self._options.alpha])}
        return [
            ("with_options", {"inputs": texts[:1], **option, "extra_length": np.int32([2])}),
            ("score", {"inputs": texts[:1]}),
            ("generate", {"inputs": texts[:1]}),
            ("serving_default", {"inputs": texts}),
        ]

    def card(self):
        """Returns ({title: text}, table of the signatures in Markdown) for the model card."""
        o = self._options
        how = (
            f"sampling, temperature {o.temperature:g}, top_k {o.top_k}, top_p {o.top_p:g}, seed {o.seed}"
            if o.sampling
            else f"beam {o.beam_size}, alpha {o.alpha:g} ({o.length_penalty}), ends {o.ends}"
        )
        rules = f"no_repeat_ngram_size {o.no_repeat_ngram_size}, repetition_penalty {o.repetition_penalty:g}"
        rules += f", stop {', '.join(map(json.dumps, o.stop))}" if o.stop else ""
        rules += f", never {', '.join(map(json.dumps, o.banned_texts))}" if o.banned_texts else ""
        longest = f"outputs complete examples of {self._whole}" if self._whole else f"at most {o.extra_length} new"
        longest += f" pieces; only the last {self.max_input_length} pieces of a prompt are read"
        option = "`seed` int32" if o.sampling else "`alpha` float32"
        return {"search": f"{how}; {rules}; {longest}"}, _TABLE.format(option=option)

    def _clipped(self, extra_length):
        return tf.clip_by_value(extra_length, 1, max(LARGEST_EXTRA_LENGTH, self._longest))

    def _generate(self, texts, alpha, seed, extra_length):
        ends, is_cut = beginnings(valid(texts), self.max_input_length, ends=True)
        pieces = self._read(ends)
        lengths = tf.cast(pieces.row_lengths(), tf.int32)
        num_ids = tf.minimum(lengths, self.max_input_length)
        prompts = _dense(pieces[:, -self.max_input_length :])
        limit = tf.broadcast_to(extra_length, tf.shape(lengths))
        if self._whole:
            limit = tf.minimum(limit, tf.maximum(self._whole - num_ids, 0))
        if self._positions is not None:
            limit = tf.minimum(limit, self._positions - num_ids)
        seeds = [tf.broadcast_to(seed, tf.shape(lengths)), tf.strings.to_hash_bucket_fast(texts, 2**31 - 1)]
        seeds = tf.stack([tf.cast(column, tf.int32) for column in seeds], 1)
        results = self._continued(prompts, limit, tf.broadcast_to(alpha, tf.shape(lengths)), seeds)
        last = _last_texts(prompts)
        whole_texts, prompt_texts = (
            self._encoder.tf_decode(ids) for ids in (tf.concat([last, results["ids"]], 1), last)
        )
        outputs = _before(_without(prompt_texts, whole_texts), self._options.stop)
        return {"outputs": outputs, "scores": results["scores"], "truncated": is_cut | (lengths > num_ids)}

    def _search(self, prompts, limit, alpha, seeds):
        """Continues prompts int32 [batch, P]; returns {"ids" int32 [batch, T], "scores" float32 [batch]}."""
        o, rules = self._options, {**self._tables, "prompts": prompts}
        if o.repetition_penalty != 1:
            rules["repetition_penalty"] = o.repetition_penalty
        if self._tables:
            rules["states"] = tf.where(tf.reduce_any(_last_texts(prompts) != PAD_ID, 1), CONTINUES, 0)
        rules = rules_of(o, **rules)
        if o.sampling:
            results = sample(self._model, prompts, limit, o, seeds=seeds, rules=rules)
        else:
            results = beam_search(self._model, prompts, limit, o, alpha=alpha, rules=rules)
        return {"ids": results.ids[:, 0], "scores": results.scores[:, 0]}


def _dense(pieces):
    """Pads ragged int32 [batch, (length)] with 0 to [batch, width], where the width is at least 1."""
    ids = pieces.to_tensor(0, shape=[None, None])
    return tf.pad(ids, [[0, 0], [0, tf.maximum(0, 1 - tf.shape(ids)[1])]])


def _last_texts(prompts):
    """Replaces everything up to the last EOS in each row of int32 [batch, P] with 0: a new text begins after EOS."""
    return tf.where(tf.cumsum(tf.cast(prompts == EOS_ID, tf.int32), axis=1, reverse=True) == 0, prompts, PAD_ID)


def _before(texts, stops):
    """Truncates texts [batch] before their first stop string, like `decoding.search.rules.before_stop`."""
    if not stops:
        return texts
    return tf.strings.regex_replace(texts, f"(?s)(?:{'|'.join(map(re.escape, stops))}).*", "", replace_global=False)


def _without(prompts, texts):
    """Removes prompts [batch] from the beginning of texts, as in `decoding.answering.continuation`."""
    # A character may be split between prompt and continuation. Then its first bytes become U+FFFD in the decoded
    # prompt, but not in the decoded whole text.
    length = tf.strings.length(prompts)
    begins = tf.strings.substr(texts, tf.zeros_like(length), length) == prompts
    start = tf.where(begins, length, tf.strings.length(tf.strings.regex_replace(prompts, r"\x{FFFD}+$", "")))
    start = tf.minimum(start, tf.strings.length(texts))
    return tf.strings.substr(texts, start, tf.strings.length(texts) - start)
