"""tensor2tensor's `--decode_hparams`."""

import dataclasses
import logging

from t2t_lite.config import HParams, parse_assignments
from t2t_lite.decoding.options import SearchOptions
from t2t_lite.errors import UserError, located, nearest, shown
from t2t_lite.ranges import (
    ALPHA,
    BEAM_SIZE,
    COUNT,
    DECODE_BATCH,
    EXTRA_LENGTH,
    SHARDS,
    check_settings,
    setting,
    settings_of,
    typed_text,
    typed_value,
)
from t2t_lite.tensor2tensor_names import hparam_answer

_LOGGER = logging.getLogger("t2t_lite")
_SEARCH, _SAMPLING = "argmax", ("random", "random_per_example")
_SAMPLING_SETTINGS = {"sampling_temp", "sampling_keep_top_k", "sampling_keep_top_p", "sampling_seed"}
_SEARCH_SETTINGS = {"alpha", "length_penalty", "ends", "return_beams"}  # not beam_size: tensor2tensor samples with 1

EVALUATION_SETTINGS = ("beam_size", "alpha", "extra_length", "length_penalty", "batch_size")
DEFAULT_GRID = "beam_size=1,4,8;alpha=0,0.6,1"  # what t2t-decoder --tune tries
HELP = (
    "name=value,… of beam_size=4 (1: greedy), alpha=0.6 (length penalty), extra_length=50 (longest output: that of the "
    "input and so many more pieces), batch_size=32 (sentences), return_beams, n_best, write_beam_scores, "
    "max_input_size, sampling_method=random, sampling_temp, sampling_keep_top_k, sampling_keep_top_p, sampling_seed, "
    "num_samples, num_decodes, replace_unknown, delimiter, shards, shard_id, shards_start_offset, shard_google_format, "
    "identity_output, log_results, length_penalty=gnmt, ends=any. A parsing problem has its own defaults: "
    "beam_size=21, alpha=0.3, extra_length=300."
)


@dataclasses.dataclass
class DecodeHParams:
    """The settings of `--decode_hparams` (tensor2tensor's utils/decoding.py); the defaults are the paper's.

    Attributes:
        beam_size, alpha, extra_length (tensor2tensor: 100), length_penalty, ends: see `SearchOptions`.
        batch_size: see `SearchOptions`; 0: 32.
        return_beams: write all beam_size outputs of a line, separated by tabs, best first (after the problem's choice).
        n_best: write that many outputs of a line; 0: one, or beam_size with return_beams.
        write_beam_scores: write each output's score after it.
        max_input_size: the longest input in ids, EOS included; -1: the model's own maximum.
        sampling_method: "argmax" searches; "random" samples (tensor2tensor's "random_per_example" is the same here).
        sampling_temp, sampling_keep_top_k (-1: all), sampling_keep_top_p, sampling_seed: how to sample, see
            `SearchOptions`. In tensor2tensor the first two are hyperparameters of the model.
        num_samples: outputs sampled per line; for a problem's records, how many are decoded, as in tensor2tensor.
        num_decodes: passes over a problem's records, each in a folder of its own; for sampling.
        replace_unknown: replace an output's unknown pieces by the input word that they attend to most.
        identity_output: write ids instead of text.
        delimiter: what ends a record in input and output files.
        shards, shard_id, shards_start_offset, shard_google_format: this command's shard, see `t2t_decoder`.
        log_results: show every input and output on stderr.
    """

    beam_size: int = setting(4, limits=BEAM_SIZE)
    alpha: float = setting(0.6, limits=ALPHA)
    extra_length: int = setting(50, limits=EXTRA_LENGTH)
    length_penalty: str = setting("gnmt", choices=("gnmt", "power"))
    ends: str = setting("any", choices=("any", "top"))
    batch_size: int = setting(0, 0, DECODE_BATCH.most)
    return_beams: bool = False
    n_best: int = setting(0, 0, BEAM_SIZE.most)
    write_beam_scores: bool = False
    max_input_size: int = setting(-1, 1, 2**20, also=(-1,))
    sampling_method: str = setting("argmax", choices=(_SEARCH, *_SAMPLING))
    sampling_temp: float = setting(1.0, 0, 1000)
    sampling_keep_top_k: int = setting(-1, 1, 2**24, also=(-1,))
    sampling_keep_top_p: float = setting(1.0, above=0, most=1)
    sampling_seed: int = setting(0, 0, 2**32 - 1)
    num_samples: int = setting(-1, 1, 2**31 - 1, also=(-1,))
    num_decodes: int = setting(1, 1, 1000)
    replace_unknown: bool = False
    identity_output: bool = False
    delimiter: str = "\n"
    shards: int = setting(1, limits=SHARDS)
    shard_id: int = setting(0, 0, SHARDS.most - 1)
    shards_start_offset: int = setting(0, limits=COUNT)
    shard_google_format: bool = False
    log_results: bool = False

    @classmethod
    def parse(cls, text, where="--decode_hparams", defaults=()):
        """Parses `name=value,name=value`; `defaults`, a dict, are the problem's own (`Problem.decode_defaults`).

        Raises:
            UserError: an unknown name (with the nearest ones), a value of the wrong type or out of range, or a
                setting of tensor2tensor that has no meaning here.
        """
        kinds, made = settings_of(cls), cls(**dict(defaults))
        for name, value in parse_assignments(text, where).items():
            if name in _NO_EFFECT:
                _LOGGER.warning("%s: %s has no effect: %s.", where, name, _NO_EFFECT[name])
            elif name in _REFUSED:
                only, why = _REFUSED[name]
                if str(value).lower() != only.lower():
                    raise UserError(f"{where}: {name}={typed_text(value)} is not available: {why}. Leave it out.")
            elif name not in kinds:
                raise UserError(f"{where}: {shown(name)} is unknown. {_instead(name, kinds)}")
            else:
                with located(where):
                    setattr(made, name, typed_value(name, value, *kinds[name]))
        made.delimiter = made.delimiter.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0")
        with located(where):
            made.check()
        return made

    def check(self):
        """Raises `UserError` for values out of range; num_samples may be a number of records."""
        check_settings(self)
        (dataclasses.replace(self, num_samples=-1) if self.is_sampling else self).search_options()
        if not 0 <= self.shard_id < self.shards:
            raise UserError(
                f"shard_id={self.shard_id}: expected from 0 to {self.shards - 1}, with shards={self.shards}."
            )
        if not self.delimiter:
            raise UserError("delimiter: expected at least one character; \\n, \\t and \\0 have their usual meaning.")

    def check_effect(self, text, where="--decode_hparams", mbr=False, may_sample=False, scores=False, of_records=False):
        """Warns of parsed settings that have no effect here, and refuses contradictory ones.

        Args:
            text: what `parse` read.
            where: the flag's name in messages.
            mbr: whether minimum Bayes risk decoding is used.
            may_sample: whether the user may ask for samples later.
            scores: whether given targets are only scored.
            of_records: whether a problem's records are decoded; num_samples is their number then.

        Raises:
            UserError: sampling options without sampling, or too many samples per line.
        """
        if self.num_samples != -1 and not (of_records or self.is_sampling or mbr):
            raise UserError(f"{where}: num_samples={self.num_samples} of a line needs sampling_method=random.")
        if not of_records:
            self.search_options()
        if self.num_decodes != 1 and not (of_records and self.is_sampling):
            raise UserError(
                f"{where}: num_decodes={self.num_decodes} needs a problem's records and sampling_method=random; of a "
                "file there is num_samples."
            )
        given = [name for name in parse_assignments(text, where) if name in _SAMPLING_SETTINGS | _SEARCH_SETTINGS]
        if scores and given:
            _LOGGER.warning("%s: %s: no effect on given targets, which are only scored.", where, ", ".join(given))
            return
        changed = [name for name in given if getattr(self, name) != getattr(DecodeHParams, name)]
        lost = [name for name in changed if name in _SAMPLING_SETTINGS]
        if lost and not (self.is_sampling or mbr or may_sample):
            raise UserError(
                f"{where}: {', '.join(lost)}: only of sampling. Add sampling_method=random, or leave "
                f"{'it' if len(lost) == 1 else 'them'} out."
            )
        if self.is_sampling and not mbr and self.n_best not in (0, self.num_outputs):
            raise UserError(f"{where}: n_best={self.n_best}: of a search. Of samples, num_samples says how many.")
        lost = [name for name in given if name in _SEARCH_SETTINGS]
        if (self.is_sampling or mbr) and lost:
            _LOGGER.warning("%s: %s: no effect on samples, which are drawn without a beam.", where, ", ".join(lost))

    def shard_name(self, path):
        """Returns the name of this shard of a file: `<path>003`, or `<path>-00003-of-00008`."""
        if self.shards == 1 or path in ("", "-"):
            return path
        number = self.shard_id + self.shards_start_offset
        return f"{path}-{number:05d}-of-{self.shards:05d}" if self.shard_google_format else f"{path}{number:03d}"

    def shard_range(self, count):
        """Returns (begin, end) of this shard among `count` lines."""
        return count * self.shard_id // self.shards, count * (self.shard_id + 1) // self.shards

    @property
    def is_sampling(self):
        """Whether outputs are sampled instead of searched for."""
        return self.sampling_method in _SAMPLING

    @property
    def num_outputs(self):
        """How many outputs are written per line."""
        if self.is_sampling:
            return max(self.num_samples, 1)
        return self.n_best or (self.beam_size if self.return_beams else 1)

    def search_options(self):
        """Returns these settings as `SearchOptions`. Raises `UserError`, also for too many samples per line."""
        if self.is_sampling:
            typed_value("num_samples", self.num_outputs, *settings_of(SearchOptions)["n_best"])
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
        """Returns the options of `SearchOptions` that concern sampling, a dict."""
        return {
            "sampling": True,
            "temperature": self.sampling_temp,
            "top_k": max(self.sampling_keep_top_k, 0),
            "top_p": self.sampling_keep_top_p,
            "seed": self.sampling_seed,
        }


def evaluation_search(text, where="--decode_hparams"):
    """Parses the search settings of evaluations, `name=value,…`; returns a dict, or None.

    Raises:
        UserError: a setting that has no meaning in evaluations, or a value out of range.
    """
    given, settings = parse_assignments(text, where), DecodeHParams.parse(text, where)
    if other := [name for name in given if name not in EVALUATION_SETTINGS]:
        raise UserError(
            f"{where}: {other[0]} has no meaning in evaluations, only {', '.join(EVALUATION_SETTINGS)}. It has one in "
            "t2t-decoder."
        )
    return {name: getattr(settings, name) for name in EVALUATION_SETTINGS if given.get(name) not in (None, "0")} or None


def _instead(name, kinds):
    """Returns what to use instead of an unknown name."""
    if name in ("decode_reference", "decode_to_file"):
        return f"It is a flag: --{name}=FILE."
    if (short := name.removeprefix("decode_")) in kinds and short != name:
        return f"Here it is {short}."
    if name in HParams():
        return f"It is a hyperparameter of the model: --hparams={name}=VALUE, when it is trained."
    return hparam_answer(name) or f"{nearest(name, kinds)} All: {', '.join(kinds)}.".lstrip()


# tensor2tensor's settings for which only the default makes sense here, and why.
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
