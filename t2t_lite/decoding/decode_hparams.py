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
        beam_size, alpha, extra_length, length_penalty: see `SearchOptions`. (tensor2tensor's extra_length is 100.)
        batch_size: see `SearchOptions`; 0: 32.
        return_beams: write all beam_size outputs of a line, separated by tabs, best first (a problem's choice before).
        write_beam_scores: with return_beams, write each output's score after it.
        max_input_size: cut longer inputs to this many ids, EOS included; -1: the model's own maximum.
        identity_output: write ids instead of text.
        log_results: show every input and output on stderr.
    """

    beam_size: int = 4
    alpha: float = 0.6
    extra_length: int = 50
    length_penalty: str = "gnmt"
    batch_size: int = 0
    return_beams: bool = False
    write_beam_scores: bool = False
    max_input_size: int = -1
    identity_output: bool = False
    log_results: bool = False

    @classmethod
    def parse(cls, text, where="--decode_hparams", defaults=()):
        """Reads `name=value,name=value`; `defaults`, a dict, are a problem's own (`Problem.decode_defaults`).

        Raises:
            UserError: an unknown name (the nearest ones are named), a value of another type or out of range, or a
                setting of tensor2tensor that is not available yet.
        """
        kinds, made = typing.get_type_hints(cls), cls(**dict(defaults))
        for name, value in parse_assignments(text, where).items():
            if name in _NO_EFFECT:
                _LOGGER.warning("%s: %s has no effect: tensor2tensor does not read it for text either.", where, name)
            elif name in _NOT_YET:
                if value != _NOT_YET[name]:
                    raise UserError(f"{where}: {name} is not available yet; only {name}={_NOT_YET[name]}.")
            elif name not in kinds:
                raise UserError(f"{where}: {name!r} is unknown. {nearest(name, kinds)} All: {', '.join(kinds)}.")
            else:
                setattr(made, name, _or_say_where(where, typed_value, name, value, kinds[name]))
        _or_say_where(where, made.search_options)
        if made.max_input_size != -1 and made.max_input_size < 1:
            raise UserError(f"{where}: max_input_size={made.max_input_size}: expected at least 1, or -1.")
        if made.write_beam_scores and not made.return_beams:
            raise UserError(f"{where}: write_beam_scores needs return_beams=true.")
        return made

    def search_options(self):
        """Returns the `SearchOptions` among them. Raises `UserError`."""
        return SearchOptions(
            beam_size=self.beam_size,
            alpha=self.alpha,
            extra_length=self.extra_length,
            batch_size=self.batch_size or SearchOptions.batch_size,
            length_penalty=self.length_penalty,
            n_best=self.beam_size if self.return_beams else 1,
        )


def _or_say_where(where, function, *args):
    try:
        return function(*args)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


# tensor2tensor's other settings: the only value that is accepted is its default, which is what happens anyway.
_NOT_YET = {
    "decode_in_memory": "False",
    "delimiter": "\\n",
    "export_extra_infer_outputs": "",
    "force_decode_length": "False",
    "multiproblem_task_id": "-1",
    "num_decodes": "1",
    "num_samples": "-1",
    "shard_google_format": "False",
    "shard_id": "0",
    "shards": "1",
    "shards_start_offset": "0",
    "skip_eos_postprocess": "False",
}
# Read by no code of tensor2tensor for text either.
_NO_EFFECT = (
    "border_percent", "block_size", "decode_timeout_mins", "display_decoded_images", "eos_penalty",
    "frames_per_second", "guess_and_check_epsilon", "guess_and_check_top_k", "insertion_parallel",
    "max_display_decodes", "max_display_outputs", "min_length_ratio", "mlperf_decode_step", "mlperf_mode",
    "mlperf_success", "mlperf_threshold", "save_images", "summaries_log_dir", "vgg_ckpt_path",
)  # fmt: skip
