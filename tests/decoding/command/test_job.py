"""A job's files and messages; and devices that share the texts of a call, with a stand-in for the model."""

import pytest
import tensorflow as tf

from t2t_lite.decoding.command import text_files
from t2t_lite.decoding.command.job import LineErrors, TranslatorPool
from t2t_lite.errors import UserError
from tests.decoding.reversing import job_of


class Noting:
    """Answers a text with the device, the text and its options; `asked` has the method's name."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        def answer(texts, targets=None, alpha=None):
            self.asked.append(name)
            device = tf.constant(0).device[-5:]
            return [(device, text, targets and targets[at], alpha) for at, text in enumerate(texts)]

        return answer


def pool_of_two():
    translators = [Noting(), Noting()]
    return translators, TranslatorPool(list(zip(["CPU:1", "CPU:2"], translators, strict=True)))


@pytest.mark.parametrize(
    "name", ["translate", "translate_by_risk", "generate", "score", "score_ids", "predict", "fill_mask", "features"]
)
def test_texts_are_shared_and_answered_in_order(name):
    translators, pool = pool_of_two()
    found = getattr(pool, name)(["a", "dddd", "bb", "ccc"], targets=["A", "D", "B", "C"], alpha=0.5)
    # by length, in turn: dddd and bb, ccc and a
    expected = [("CPU:2", "a", "A", 0.5), ("CPU:1", "dddd", "D", 0.5), ("CPU:1", "bb", "B", 0.5)]
    assert found == [*expected, ("CPU:2", "ccc", "C", 0.5)]
    assert [one.asked for one in translators] == [[name], [name]]


def test_a_pool_has_the_history_of_each_device():
    translators, pool = pool_of_two()
    pool.search_history = [{"a": 1}, {"b": 2}]
    assert [one.search_history for one in translators] == pool.search_history == [{"a": 1}, {"b": 2}]


def test_a_message_that_names_on_error_is_not_completed():
    """For others, and for the number of skipped lines, see `test_messages_have_the_numbers_of_the_whole_file`."""
    with pytest.raises(UserError, match=r"^bad: add --on_error=skip\.$"):
        LineErrors("stop")("bad: add --on_error=skip.")


@pytest.mark.parametrize(("data_dir", "folder"), [("data", "data"), (None, "run")])
def test_a_problems_configuration_is_in_its_folder(tmp_path, monkeypatch, data_dir, folder):
    monkeypatch.setattr(text_files, "reader", lambda path, problem, folder, encoders: (path, folder, encoders()))
    job = job_of(tmp_path, data_dir=data_dir)
    found = job.reader("in")
    assert found == ("in", "data" if data_dir else str(tmp_path / "run"), job.translator.encoders)


def test_the_name_of_an_output(tmp_path):
    job = job_of(tmp_path, "beam_size=3,alpha=1.5")
    assert job.default_name("some/in/") == "some/in.reversing.texts.beam3.alpha1.5.decodes"
    job.runs[0].config["hparams_set"] = "tiny"
    assert job.default_name("in") == "in.reversing.tiny.texts.beam3.alpha1.5.decodes"


def test_further_outputs_are_parts(tmp_path):
    job = job_of(tmp_path, "shards=2,shard_id=1", alignments_file="links")
    assert job.files_beside() == {"alignment": ("--alignments_file", "links001")}
    assert job_of(tmp_path).files_beside() == {}


def test_no_output_replaces_an_input_or_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("in", "in001"):
        (tmp_path / name).touch()
    job = job_of(tmp_path, "shards=2,shard_id=1", inputs={"--decode_from_file": "in", "--prefix_file": ""})
    for path in ("in", "in001", "run/model.ckpt-7.index"):
        with pytest.raises(UserError, match=f"--decode_to_file={path}.* would overwrite"):
            job.check_files({"--decode_to_file": path})
    job.check_files({"--decode_to_file": "in002"})
