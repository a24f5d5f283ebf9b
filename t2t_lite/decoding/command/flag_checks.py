"""Checks the flags and decoding settings of t2t-decoder against its mode, the model and one another.

Flags (`_FLAGS`) and settings (`setting(…, needs=, excludes=)`) declare which facts they need or exclude; `check` is the
one function that reads these declarations.
"""

import dataclasses

from t2t_lite import registry
from t2t_lite.cli import console
from t2t_lite.cli.commands import Mode, check_mode
from t2t_lite.decoding.command.decode_hparams import DEFAULT_GRID, DecodeHParams, decode_settings
from t2t_lite.decoding.command.text_files import writer
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.settings.config import parse_assignments
from t2t_lite.tasks.task import check_answered_by

TELLERS = {name: registry.teller(name) for name in registry.list_tellers()}  # see `Teller`
INPUTS = ("decode_from_file", "decode_reference", "prefix_file", "score_file")
LINE_FILES = ("alignments_file", *(teller.flag for teller in TELLERS.values()))  # files with one line per input line
FEATURES_FLAGS = ("features_layers", "features_join", "features_pooling")
_LONG = ("long_input", "split_sentences")
_SEARCH = (*_LONG, "mbr", "n_best_format")
_OUTPUT = ("decode_to_file", *LINE_FILES, "keep_timestamp")
MODES = {
    "tune": Mode("--tune", ("tune", "decode_from_file", "decode_reference", "eval_use_test_set", *_LONG)),
    "decode_interactive": Mode("--decode_interactive", ("decode_interactive", *_SEARCH)),
    "score_file": Mode("--score_file", ("score_file", "decode_to_file", "keep_timestamp")),
    "features_file": Mode(
        "--features_file", ("decode_from_file", "long_input", "features_file", *FEATURES_FLAGS), ("decode_from_file",)
    ),
    "decode_from_file": Mode("--decode_from_file", (*INPUTS[:3], *_OUTPUT, *_SEARCH)),
    "records": Mode("a problem's records", ("eval_use_test_set", *_OUTPUT, *_SEARCH), ("data_dir",)),
    "stream": Mode("standard input", ("decode_from_file", "decode_to_file", *_SEARCH)),
}


@dataclasses.dataclass(frozen=True)
class DecodeRequest:
    """The flags given to t2t-decoder, with its model and settings.

    Facts about the model or the settings are assumed to hold until the model or the settings are known.

    Attributes:
        flags: {name: value} of the given flags; `request[name]` is "" for all other flags.
        runs: list of `runs.locating.LocatedRun` with the same task: one run, or the runs of an ensemble.
        settings: DecodeHParams, or None.
        text: str, the text from which the settings were parsed.
    """

    flags: dict = dataclasses.field(default_factory=dict)
    runs: list = ()
    settings: DecodeHParams | None = None
    text: str = ""

    def __getitem__(self, name):
        return self.flags.get(name, "")

    def given(self, *names):
        """Returns {name: value} of the flags in `names` that are given."""
        return {name: self.flags[name] for name in names if name in self.flags}

    def of_model(self, runs):
        """Returns a checked copy that includes the model and the settings of --decode_hparams.

        Raises:
            UserError: see `check`.
        """
        text, request = self["decode_hparams"], DecodeRequest(self.flags, runs)
        no_beam = bool(self["mbr"]) or request.answered_by == "Predictor"
        settings = DecodeHParams.parse(text, defaults=runs[0].problem.decode_defaults, mbr=no_beam)
        if "decode_shards" in self.flags:
            settings.shards, settings.shard_id = self["decode_shards"], self.flags.get("worker_id", 0)
        request = dataclasses.replace(request, settings=settings, text=text)
        check(request)
        return request

    @property
    def mode(self):
        """The key in `MODES` of the mode that the flags select."""
        if names := [name for name in MODES if self[name]]:
            return "stream" if names[0] == "decode_from_file" and self[names[0]] == "-" else names[0]
        of_records = self["eval_use_test_set"] or (self["problem"] and self["data_dir"])
        return "records" if of_records else "stream"

    @property
    def has_records(self):
        """Whether the inputs are a problem's records."""
        return self.mode == "records" or (self.mode == "tune" and not self["decode_from_file"])

    @property
    def shards(self):
        """The number of t2t-decoder commands that share the input."""
        return self.settings.shards if self.settings else self.flags.get("decode_shards", 1)

    @property
    def samples(self):
        """Whether outputs are sampled."""
        return bool(self["mbr"] or self.settings.search.sampling)

    @property
    def task(self):
        """The model's task, or None."""
        return registry.task_of(self.runs[0].problem) if self.runs else None

    @property
    def answered_by(self):
        """The name of the class that runs the model, such as "Translator", or None."""
        return self.task and self.task.answered_by

    @property
    def models(self):
        """The models' classes. The first access takes seconds, since it imports them."""
        return [registry.model(run.config["model"]) for run in self.runs]

    @property
    def writes_lines(self):
        """Whether lines of text are written, instead of files in the problem's own format, such as images."""
        return not (self.runs and writer(self["decode_to_file"], self.runs[0].problem))

    def words(self):
        """Returns the values of the fields in message templates, {field: value}."""
        words = {"shards": self.shards, "output": self["decode_to_file"]}
        if not self.runs:
            return words
        model = self.runs[0].config["model"]
        kind = {"Predictor": "an encoder", "Generator": "a language model"}.get(self.answered_by, f"a {model}")
        return words | {"checkpoint": self.runs[0].checkpoint, "model": model, "kind": kind, "count": len(self.runs)}


def _has_dev_set(request):
    source, reference = request["decode_from_file"], request["decode_reference"]
    return bool(source) == bool(reference) and bool(source or request["data_dir"])


def _writes_text(request):
    is_ids = request.settings and request.settings.identity_output and request.mode == "decode_from_file"
    return not is_ids or request["n_best_format"] == "json"


def _shows_attention_to_inputs(model):
    # A model that joins inputs and targets to one sequence has only self-attention.
    return hasattr(model, "attention_weights") and not getattr(model, "joins_inputs", False)


def _ranks(request):
    n_best, is_search = request.settings.n_best, not request.settings.search.sampling
    num_samples = 1 if request.has_records else request.settings.num_outputs
    return is_search or request["mbr"] or n_best in (0, num_samples)


# {fact: (function of a `DecodeRequest` that returns whether the fact holds, message for flags that need the fact)}
_FACTS = {
    "input_file": (lambda request: request.shards == 1 or request.mode not in ("stream", "decode_interactive"),
                   "{names}: standard input cannot be split. Name a file in --decode_from_file."),
    "dev_set": (_has_dev_set, "{names}: missing dev set. Add --decode_from_file and --decode_reference, or "
                "--data_dir."),
    "output_file": (lambda request: request.mode != "score_file" or request["decode_to_file"] not in ("", "-"),
                    "{names}: standard output has no modification time. Name a file in --decode_to_file, or remove "
                    "{it}."),
    "no_records": (lambda request: request.mode != "records",
                   "{names}: outputs of records are written to files. Name a file, or remove {it}."),
    "array_file": (lambda request: "-" not in (request["decode_from_file"], request["features_file"]),
                   "{names}=-: expected file names. Features are written to a file such as features.npz, and texts "
                   "are read from a file."),
    "part": (lambda request: request["worker_id"] < request.shards,
             "{values}: expected less than --decode_shards={shards}."),
    "bleu": (lambda request: request.mode in ("records", "tune")
             or request["decode_reference"] or request["mbr"] == "bleu",
             "{names}: only for BLEU. Add --decode_reference, --tune or --mbr=bleu, or remove {it}."),
    "encoder": (lambda request: request.answered_by in (None, "Predictor"),
                "{names}: only for encoders; {checkpoint} is {kind}. Remove {it}."),
    "translation": (lambda request: request.answered_by not in ("Predictor", "Generator"),
                    "{names}: only for models that translate; {checkpoint} is {kind}. Remove {it}."),
    "text": (lambda request: request.answered_by != "Predictor",
             "{names}: only for models that write text; {checkpoint} is {kind}. Remove {it}."),
    "decoded_records": (lambda request: request.mode != "records"
                        or request.answered_by not in ("Predictor", "Generator"),
                        "{names}: {checkpoint} is {kind}, whose records can be evaluated by t2t-eval but not decoded. "
                        "Name a file of texts in --decode_from_file (- is standard input)."),
    "attention": (lambda request: all(map(_shows_attention_to_inputs, request.models)),
                  "{names}: {checkpoint} is a {model}, which does not expose its attention to inputs. Remove {it}."),
    "stepwise": (lambda request: not any(callable(getattr(model, "search", None)) for model in request.models[:1]),
                 "{names}: only for models that predict one id after the other, but {checkpoint} is a {model}, whose "
                 "own search returns one output. Remove {it}."),
    "text_output": (_writes_text, "{names}: BLEU needs texts, but identity_output=true writes ids. Remove one of the "
                    "two, or add --n_best_format=json, which writes texts as well."),
    "lines": (lambda request: request.writes_lines, "{names}: only for lines of text, but --decode_to_file={output} is "
              "another kind of file. Remove {it}."),
    "lines_or_file": (lambda request: request.mode != "stream" or request.writes_lines,
                      "{values}: this kind of file cannot be written from standard input. Name an input file in "
                      "--decode_from_file."),
    "ranked": (_ranks, "{values}: only for a search. Set num_samples (for records: num_decodes) to change the number "
               "of samples."),
    "may_sample": (lambda request: request.samples or request.mode == "decode_interactive",
                   "{names}: only for sampling. Add sampling_method=random, or remove {it}."),
    "samples_or_records": (lambda request: request.samples or request.has_records,
                           "{values}: several samples per line need sampling_method=random."),
    "sampled_records": (lambda request: request.has_records and request.settings.search.sampling,
                        "{values}: only for a problem's records with sampling_method=random. For a file, use "
                        "num_samples."),
}  # fmt: skip
_FLAGS = {  # {flag, or flag=value: facts that the flag needs in addition to its mode}
    "tune": ("dev_set", "translation", "stepwise"),
    "keep_timestamp": ("output_file",),
    "decode_to_file=-": ("no_records",),
    "decode_to_file": ("lines_or_file",),
    "features_file": ("array_file", "encoder"),
    "decode_shards": ("input_file",),
    "worker_id": ("part",),
    "tokenization": ("bleu",),
    "decode_reference": ("translation", "text_output", "lines"),
    "prefix_file": ("translation",),
    "eval_use_test_set": ("translation",),
    "split_sentences": ("translation",),
    "score_file": ("text",),
    "data_dir": ("decoded_records",),
    "mbr": ("translation", "stepwise"),
    "n_best_format=json": ("stepwise", "lines"),
    "alignments_file": ("translation", "attention"),
}
for _name, _teller in TELLERS.items():
    _FLAGS[_teller.flag] = ("translation", f"one {_name}", _name)
    _FACTS[f"one {_name}"] = (
        lambda request: len(request.runs) < 2,
        f"{{names}}: each of the ensemble's {{count}} models has {_teller.own}. Remove {{it}}.",
    )
    _FACTS[_name] = (
        lambda request, name=_name: all(hasattr(model, name) for model in request.models),
        f"{{names}}: {{checkpoint}} is a {{model}}, which {_teller.without}. Remove {{it}}.",
    )
_EXCLUDED = {  # {fact: (function of a `DecodeRequest` that returns whether it holds, the end of "no effect on …")}
    "targets": (lambda request: request.mode == "score_file", "the targets in --score_file, which are only scored"),
    "samples": (lambda request: request.samples, "samples, which do not use a beam"),
}


def decode_request(flags):
    """Converts absl's flags to a `DecodeRequest`. Raises `UserError` for mistakes that need no model."""
    flags.tune = {"true": DEFAULT_GRID, "false": ""}.get(flags.tune, flags.tune)
    request = DecodeRequest({name: flags[name].value for name in flags if flags[name].present})
    if request.mode == "stream" and not request["decode_from_file"] and console.is_terminal():
        raise UserError(
            "missing input: expected --decode_from_file (a text file, or - for standard input), --decode_interactive, "
            "or --problem and --data_dir to decode records."
        )
    check_mode(flags, MODES[request.mode], MODES)
    check(request)
    return request


def check(request, where="--decode_hparams"):
    """Raises `UserError` for flags and settings whose requirements are not met; warns about settings without effect.

    Args:
        request: DecodeRequest.
        where: str, the name of the settings' flag in messages.

    Raises:
        UserError: a requirement is not met, or no class of this package supports the model.
    """
    if request.runs and request.answered_by not in ("Predictor", "Generator"):
        check_answered_by(request.runs[0].problem, "Translator", request.runs[0].checkpoint)
    keys = {key: key.partition("=") for key in _FLAGS}
    by_key = {key: request[name] for key, (name, _, _) in keys.items()}
    by_key = {key: value for key, value in by_key.items() if value and keys[key][2] in ("", value)}
    _require(request, {f"--{key}": (_FLAGS[key], value) for key, value in by_key.items()})
    if request.settings is not None:
        _check_settings(request, where)


def _check_settings(request, where):
    declared, names = decode_settings(), [*parse_assignments(request.text, where)]
    if request.answered_by == "Predictor":
        has_several = request.task.has_hypotheses
        known = [name for name, one in declared.items() if one.predicts and (name != "n_best" or has_several)]
        if lost := [name for name in names if name not in known]:
            raise UserError(
                f"{where}: {', '.join(lost)}: no effect on predictions. Expected one or more of {', '.join(known)}."
            )
    elif not request.has_records:
        request.settings.search_options(bool(request["mbr"]))
    names = [name for name in names if name in declared]
    for fact, (holds, what) in _EXCLUDED.items():
        lost = [name for name in names if fact in declared[name].excludes]
        if lost and holds(request):
            LOGGER.warning("%s: %s: no effect on %s.", where, ", ".join(lost), what)
            names = [name for name in names if name not in lost]
    needs = {name: declared[name].needs for name in request.settings.changed(names)}
    _require(request, {name: (needs[name], request.settings.value(name)) for name in needs}, f"{where}: ")


def _require(request, needs, where=""):
    """Raises `UserError` for the first fact that does not hold; `needs` is {name: (facts needed, value)}."""
    for fact, (holds, message) in _FACTS.items():
        lacking = {name: value for name, (facts, value) in needs.items() if fact in facts}
        if lacking and not holds(request):
            words = {"names": ", ".join(lacking), "it": "it" if len(lacking) == 1 else "them"}
            words["values"] = ", ".join(f"{name}={value}" for name, value in lacking.items())
            raise UserError(where + message.format(**words, **request.words()))
