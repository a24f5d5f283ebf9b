"""A stand-in for a Translator and for t2t-decoder's model, which reverses texts: every character is an id."""

import os
import types

from t2t_lite.data.problem import Problem
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.job import DecodingJob
from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.decoding.scoring import TargetScore
from t2t_lite.decoding.search.searcher import longest_translation
from t2t_lite.decoding.translator import SourceText, Translator
from t2t_lite.errors import UserError


class Characters:
    """An encoder without "%"."""

    fingerprint = "characters"

    def encode(self, text):
        if "%" in text:
            raise UserError("'%' is not in the vocabulary.")
        return [ord(character) for character in text]

    def decode(self, ids):
        return "".join(map(chr, ids))


class Reversing:
    """Reads at most 12 ids. `prefixes` are those of the last call, and `given` the options of each one."""

    encoders = types.MappingProxyType({"inputs": Characters(), "targets": Characters()})
    problem = run = None
    max_input_length = 12
    hparams = types.SimpleNamespace(max_length=11)
    searcher = types.SimpleNamespace(longest_output=longest_translation)
    reader, answer, prefix_of = Translator.reader, Translator.answer, Translator.prefix_of

    def __init__(self, problem=None):
        self.problem, self.given, self.search_history = problem, [], {}

    def checked_length(self, length, name):
        return length or self.max_input_length

    def read(self, text, max_input_length):
        return SourceText(text, text, self.encoders["inputs"].encode(text) if text.strip() else [])

    def translate(self, sources, max_input_length, on_progress=None, prefixes=None, n_best=1, **options):
        self.prefixes = prefixes
        self.given.append(options | {"n_best": n_best, "prefixes": prefixes, "count": len(sources)})
        longest = max_input_length - 1  # beside EOS
        texts = [source.text for source in sources]
        return [
            Translation(
                tuple(Hypothesis(text[:longest][::-1] + "!" * n, -1.0 * n, ids=[n]) for n in range(n_best)),
                truncated=len(text) > longest,
            )
            for text in texts
        ]

    def pair_ids(self, text, target):
        return [self.encoders["inputs"].encode(text), self.encoders["targets"].encode(target)]

    def score_ids(self, pairs, batch_size):
        self.given.append({"batch_size": batch_size})
        return [TargetScore(-0.25 * len(source), [-1.0] * len(target)) for source, target in pairs]


def job_of(folder, settings="", names=("model.ckpt-7",), problem=None, **fields):
    """Returns a DecodingJob with a Reversing, of checkpoints in `folder`/run whose times are 1007 and so on."""
    problem, runs = problem or Problem(), []
    (folder / "run").mkdir(exist_ok=True)
    for name in names:
        index = folder / "run" / f"{name}.index"
        index.write_text(name)
        os.utime(index, (1000 + int(name[-1]),) * 2)
        config = {"model": "reversing", "hparams_set": "", "problem": "texts"}
        runs.append(types.SimpleNamespace(checkpoint=str(folder / "run" / name), config=config, problem=problem))
    job = DecodingJob(runs, DecodeHParams.parse(settings, mbr=bool(fields.get("mbr"))), **fields)
    job.translator = Reversing()
    return job
