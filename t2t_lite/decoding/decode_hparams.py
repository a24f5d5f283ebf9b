"""tensor2tensor's `--decode_hparams`."""

import dataclasses
import logging
import typing

from t2t_lite.config import parse_assignments, typed_value
from t2t_lite.decoding.options import SearchOptions
from t2t_lite.errors import UserError, nearest

_LOGGER = logging.getLogger("t2t_lite")


@dataclasses.dataclass
class DecodeHParams:
    """What `--decode_hparams` may set (tensor2tensor's utils/decoding.py); the defaults are the paper's translation's.

    Attributes:
        beam_size, alpha, extra_length (tensor2tensor: 100), length_penalty, ends: see `SearchOptions`.
        batch_size: see `SearchOptions`; 0: 32.
        return_beams: write all beam_size outputs of a line, separated by tabs, best first (a problem's choice before).
        n_best: write that many outputs of a line; 0: one, or beam_size with return_beams.
        write_beam_scores: write each output's score after it.
        max_input_size: the longest input in ids, EOS included; -1: the model's own maximum.
        sampling_method: "argmax" searches; "random" draws (tensor2tensor's "random_per_example" is the same here).
        sampling_temp, sampling_keep_top_k (-1: all), sampling_keep_top_p, sampling_seed: how to draw, see
            `SearchOptions`. tensor2tensor has the first two among the model's hyperparameters.
        num_samples: outputs drawn for a line; of a problem's records it is how many are decoded, as in tensor2tensor.
        num_decodes: passes over a problem's records, each in a folder of its own; for drawn outputs.
        replace_unknown: an output's unknown pieces become the word of the input that they attend to most.
        identity_output: write ids instead of text.
        delimiter: what ends a record in input and output files.
        shards, shard_id, shards_start_offset, shard_google_format: this command's part, see `t2t_decoder`.
        log_results: show every input and output on stderr.
    """

    beam_size: int = 4
    alpha: float = 0.6
    extra_length: int = 50
    length_penalty: str = "gnmt"
    ends: str = "any"
    batch_size: int = 0
    return_beams: bool = False
    n_best: int = 0
    write_beam_scores: bool = False
    max_input_size: int = -1
    sampling_method: str = "argmax"
    sampling_temp: float = 1.0
    sampling_keep_top_k: int = -1
    sampling_keep_top_p: float = 1.0
    sampling_seed: int = 0
    num_samples: int = -1
    num_decodes: int = 1
    replace_unknown: bool = False
    identity_output: bool = False
    delimiter: str = "\n"
    shards: int = 1
    shard_id: int = 0
    shards_start_offset: int = 0
    shard_google_format: bool = False
    log_results: bool = False

    @classmethod
    def parse(cls, text, where="--decode_hparams", defaults=()):
        """Reads `name=value,name=value`; `defaults`, a dict, are a problem's own (`Problem.decode_defaults`).

        Raises:
            UserError: an unknown name (the nearest ones are named), a value of another type or out of range, or a
                setting of tensor2tensor that has no meaning here.
        """
        kinds, made = typing.get_type_hints(cls), cls(**dict(defaults))
        for name, value in parse_assignments(text, where).items():
            if name in _NO_EFFECT:
                _LOGGER.warning("%s: %s has no effect: %s.", where, name, _NO_EFFECT[name])
            elif name in _REFUSED:
                only, why = _REFUSED[name]
                if value.lower() != only.lower():
                    raise UserError(f"{where}: {name}={value} is not available: {why}. Leave it out.")
            elif name not in kinds:
                raise UserError(f"{where}: {name!r} is unknown. {nearest(name, kinds)} All: {', '.join(kinds)}.")
            else:
                setattr(made, name, _or_say_where(where, typed_value, name, value, kinds[name]))
        made.delimiter = made.delimiter.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0")
        _or_say_where(where, made.check)
        return made

    def check(self):
        """Raises `UserError` for values out of range."""
        if self.sampling_method not in (_SEARCH, *_SAMPLING):
            raise UserError(f"sampling_method={self.sampling_method}: expected argmax or random.")
        self.search_options()
        for name in ("max_input_size", "num_samples", "sampling_keep_top_k"):
            if getattr(self, name) != -1 and getattr(self, name) < 1:
                raise UserError(f"{name}={getattr(self, name)}: expected at least 1, or -1.")
        for name, least in (("n_best", 0), ("num_decodes", 1), ("shards", 1), ("shards_start_offset", 0)):
            if getattr(self, name) < least:
                raise UserError(f"{name}={getattr(self, name)}: expected at least {least}.")
        if not 0 <= self.shard_id < self.shards:
            raise UserError(
                f"shard_id={self.shard_id}: expected from 0 to {self.shards - 1}, with shards={self.shards}."
            )
        if not self.delimiter:
            raise UserError("delimiter: expected at least one character; \\n, \\t and \\0 have their usual meaning.")

    @property
    def is_sampling(self):
        """Whether outputs are drawn, not searched for."""
        return self.sampling_method in _SAMPLING

    @property
    def num_outputs(self):
        """How many outputs are written for a line."""
        if self.is_sampling:
            return max(self.num_samples, 1)
        return self.n_best or (self.beam_size if self.return_beams else 1)

    def search_options(self):
        """Returns the `SearchOptions` among them. Raises `UserError`."""
        return SearchOptions(
            beam_size=self.beam_size,
            alpha=self.alpha,
            extra_length=self.extra_length,
            batch_size=self.batch_size or SearchOptions.batch_size,
            length_penalty=self.length_penalty,
            ends=self.ends,
            n_best=self.num_outputs,
            **(self.sampling_options() if self.is_sampling else {}),
        )

    def sampling_options(self):
        """Returns those of the `SearchOptions` that say how to draw, a dict."""
        return {
            "sampling": True,
            "temperature": self.sampling_temp,
            "top_k": max(self.sampling_keep_top_k, 0),
            "top_p": self.sampling_keep_top_p,
            "seed": self.sampling_seed,
        }


def _or_say_where(where, function, *args):
    try:
        return function(*args)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


_SEARCH, _SAMPLING = "argmax", ("random", "random_per_example")

# tensor2tensor's settings of which only the default makes sense here, and why.
_REFUSED = {
    "export_extra_infer_outputs": ("", "t2t-exporter says what an export gives"),
    "force_decode_length": ("False", "an output ends where the model ends it"),
    "multiproblem_task_id": ("-1", "there are no multi-problems"),
}
_UNREAD = "tensor2tensor does not read it for text either"
_NO_EFFECT = {
    "decode_in_memory": "outputs go to a file or to standard output, and in Python they are returned",
    "skip_eos_postprocess": "nothing comes after the end of an output",
} | dict.fromkeys((
    "border_percent", "block_size", "decode_timeout_mins", "display_decoded_images", "eos_penalty",
    "frames_per_second", "guess_and_check_epsilon", "guess_and_check_top_k", "insertion_parallel",
    "max_display_decodes", "max_display_outputs", "min_length_ratio", "mlperf_decode_step", "mlperf_mode",
    "mlperf_success", "mlperf_threshold", "save_images", "summaries_log_dir", "vgg_ckpt_path",
), _UNREAD)  # fmt: skip
