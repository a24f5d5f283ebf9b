"""A problem's records through a stand-in for the model."""

import pytest

from t2t_lite.data import records
from t2t_lite.data.problem import DatasetSplit, Problem
from t2t_lite.decoding.command import decode_records
from t2t_lite.decoding.command.decode_records import read_records, translate_records
from t2t_lite.decoding.translator import SourceText
from t2t_lite.errors import UserError
from tests.decoding.reversing import Characters, Reversing, job_of

TEXTS = ["a b c d e", "f g h i j", "k l m n o", "p q r s t", "u v w x y"]
TARGETS = [text[::-1].upper() for text in TEXTS]
BASE = "out.reversing.texts.beam4.alpha0.6"


class Own(Problem):
    full_name = "texts"
    encoders = {"inputs": Characters(), "targets": Characters()}  # noqa: RUF012

    def get_feature_encoders(self, data_dir):
        self.read_from = data_dir
        return self.encoders if data_dir == "data" else dict.fromkeys(self.encoders, type("", (), {"fingerprint": ""}))

    def output_text(self, inputs, outputs, encoders):
        return outputs.lower()


class Records(records.Records):
    """As of data/: ids that end in EOS, and padding."""

    paths = property(lambda self: [f"{self.data_dir}/texts-{self.split}"])

    def examples(self, hparams):
        for pair in zip(TEXTS, TARGETS, strict=False):
            yield {name: [*map(ord, text), 1, 0, 0] for name, text in zip(("inputs", "targets"), pair, strict=True)}


@pytest.fixture
def decoded(tmp_path, monkeypatch):
    """Function of settings and a job's fields: decodes the records; returns the job and what was written."""
    monkeypatch.setattr(decode_records, "Records", Records)
    monkeypatch.chdir(tmp_path)

    def decode(settings="", output="out", translator=None, **fields):
        job = job_of(tmp_path, settings, problem=Own(), **{"data_dir": "data", "tokenization": "13a"} | fields)
        job.translator = translator or Reversing(Own())
        translate_records(job, DatasetSplit.EVAL, output)
        paths = [path for path in sorted(tmp_path.rglob("*")) if path.is_file() and path.suffix != ".index"]
        return job, {str(path.relative_to(tmp_path)): path.read_text() for path in paths}

    return decode


def written(texts, end="\n"):
    return "".join(f"{text}{end}" for text in texts)


def test_inputs_targets_and_outputs_are_written(decoded, capsys):
    job, files = decoded()
    assert not hasattr(job.translator.problem, "read_from"), "the model keeps the settings of its own data"
    targets = [text.lower() for text in TARGETS]
    assert files == {
        f"{BASE}.inputs": written(TEXTS),
        f"{BASE}.targets": written(targets),
        f"{BASE}.decodes": written(text[::-1] for text in TEXTS),
    }
    errors = capsys.readouterr().err
    assert "decoding 5 dev examples of texts" in errors and "sacreBLEU = 100.00" in errors


def test_line_ends_reach_the_model_and_targets_become_outputs_of_their_inputs(decoded, monkeypatch):
    class Marked(Own):
        def output_text(self, inputs, outputs, encoders):
            return f"{outputs} of {inputs[:1]}"

    read = []
    monkeypatch.setattr(Reversing, "read", lambda self, text, limit: read.append(text) or SourceText(text, text, [2]))
    monkeypatch.setattr(f"{__name__}.TEXTS", ["a b\nc", "d e\u2028f"])
    _, files = decoded(translator=Reversing(Marked()))
    assert read == TEXTS
    assert files == {
        f"{BASE}.inputs": written(["a b c", "d e f"]),
        f"{BASE}.targets": written(["E D C B A of a", "J I H G F of d"]),
        f"{BASE}.decodes": written(["c b a", "f e d"]),
    }


def test_a_part_of_the_first_records_with_their_own_references(decoded, capsys):
    _, files = decoded("num_samples=3,shards=2,shard_id=1,delimiter=|")
    name = "out001.reversing.texts.beam4.alpha0.6"
    assert files[f"{name}.inputs"] == written(TEXTS[1:3], "|")
    assert files[f"{name}.targets"] == written([text.lower() for text in TARGETS[1:3]], "|")
    assert "sacreBLEU = 100.00" in capsys.readouterr().err


def test_a_delimiter_inside_a_text_ends_no_record(decoded):
    _, files = decoded("delimiter=c")
    assert [content.count("c") for content in files.values()] == [5, 5, 5]


@pytest.mark.parametrize("seeds", [(11, 12), (2**31 - 1, 0)])  # 0 follows the largest one
def test_each_of_several_passes_has_a_folder_and_a_seed(decoded, seeds):
    settings = f"num_decodes=2,num_samples=4,sampling_method=random,sampling_seed={seeds[0]}"
    job, files = decoded(settings, output=f"some/{BASE}.decodes")
    assert {name for name in files if name.endswith(".decodes")} == {
        f"some/decode_0000{n}/{BASE}.decodes" for n in (0, 1)
    }
    assert [(one["seed"], one["n_best"]) for one in job.translator.given] == [(seed, 1) for seed in seeds]


@pytest.mark.parametrize("fields, has_bleu", [({}, False), ({"n_best_format": "json"}, True)])
def test_ids_have_no_bleu(decoded, capsys, fields, has_bleu):
    decoded("identity_output=true", **fields)
    assert ("sacreBLEU" in capsys.readouterr().err) is has_bleu


def test_records_of_another_vocabulary_or_that_would_be_overwritten(decoded, tmp_path):
    with pytest.raises(UserError, match=r"--data_dir=other: its vocabulary for the inputs"):
        decoded(data_dir="other")
    (tmp_path / f"{BASE}.targets").touch()
    with pytest.raises(UserError, match=r"--decode_to_file.* would overwrite"):
        decoded(inputs={"--decode_from_file": f"{tmp_path}/{BASE}.targets"})
    job = job_of(tmp_path, "num_samples=2", problem=Own(), data_dir="data")
    job.translator = Reversing(Own())
    assert read_records(job, DatasetSplit.TEST) == (TEXTS[:2], [text.lower() for text in TARGETS[:2]])
