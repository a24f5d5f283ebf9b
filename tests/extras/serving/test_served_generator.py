"""The streams of an export, against its signatures and Generator."""

import numpy as np
import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite.errors import UserError
from t2t_lite.export import export_saved_model
from t2t_lite.export.generation_signatures import GenerationSignatures
from t2t_lite.export.signatures import TextSignatures
from t2t_lite.extras.serving import served_generator
from t2t_lite.extras.serving.completion_requests import CompletionRequest
from t2t_lite.extras.serving.completions import Completions
from t2t_lite.extras.serving.model_versions import ModelVersions, load_with_generator
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.extras.serving.served_generator import ServedGenerator
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.runs import make_language_model_run, make_run
from tests.export.served import HOSTILE

pytestmark = pytest.mark.slow

OPTIONS = {"beam_size": 1, "extra_length": 12, "no_repeat_ngram_size": 2, "stop": ["zu", "\ufffd"]}
PROMPTS = ["the red", "", "   ", "Gr\u00fc", "the red house is old " * 20_000]
PROMPTS += [row.decode("utf-8", "replace") for row in HOSTILE]


@pytest.fixture(scope="module")
def export_dir(tmp_path_factory):
    """Of a language model, with one signature."""
    folder = tmp_path_factory.mktemp("export")
    generator = t2t_lite.load(str(make_language_model_run(folder, initializer_gain=3.0)))
    with pytest.MonkeyPatch.context() as patch:
        functions = GenerationSignatures.functions
        patch.setattr(GenerationSignatures, "functions", lambda self: {"serving_default": functions(self)["generate"]})
        patch.setattr(GenerationSignatures, "warmup", lambda self: [])
        export_saved_model(generator, str(folder / "export"), max_input_length=15, **OPTIONS)
    return folder / "export"


@pytest.fixture(scope="module")
def generator(export_dir):
    return ServedGenerator(str(export_dir / "1"))


def test_streams_are_the_answers_of_the_signatures(export_dir, generator):
    """To any text; of long prompts only the end is read."""
    signature = tf.saved_model.load(str(export_dir / "1")).signatures["serving_default"]
    expected = signature(inputs=tf.constant([prompt.encode() for prompt in PROMPTS]))
    streams = []
    for prompt in PROMPTS:
        request = CompletionRequest.parse({"prompt": prompt}, generator.options, generator.most_tokens)
        streams.append(generator.stream(request.prompts[0], request.max_tokens, request.options))
        "".join(streams[-1])
    assert [stream.text for stream in streams] == [text.decode() for text in expected["outputs"].numpy()]
    assert [stream.truncated for stream in streams] == expected["truncated"].numpy().tolist()
    assert len({stream.text for stream in streams}) > 4 and any(stream.stop for stream in streams)
    assert len(streams[4].prompt_ids) == 15


def test_limits_and_what_is_traced_anew(generator):
    assert (generator.most_tokens, generator.options.beam_size, generator.options.extra_length) == (512, 1, 12)
    settings = {
        "nothing": {}, "top_k": {"top_k": 3}, "no repetition": {"no_repeat_ngram_size": 3}, "top_p": {"top_p": 0.5},
        "a penalty": {"repetition_penalty": 1.5},
    }  # fmt: skip
    searcher = generator._generator.searcher
    searcher.forget_functions()

    def begin(prompt, length, **options):
        next(iter(generator.stream(prompt, length, SearchOptions(**options))), "")

    for count, (name, options) in enumerate(settings.items(), 1):
        begin("the red", 9, sampling=True, **options)
        assert searcher.num_compiled == count, name
    begin("the red", 10, sampling=True)
    begin("the red", 9, beam_size=1)
    assert searcher.num_compiled == len(settings), "lengths are rounded up, and a temperature of 0 is greedy"
    begin("the red", 300, beam_size=1)
    begin("the red house is new. " * 9, 9, beam_size=1)
    assert searcher.num_compiled == len(settings) + 2, "other lengths"


def test_samples_are_those_of_generator_and_traces_of_any_settings_do_not_pile_up(export_dir, generator, monkeypatch):
    monkeypatch.setattr(served_generator, "_MOST_TRACED", 3)
    searcher, streams, kept = generator._generator.searcher, [], []
    forget = searcher.forget_functions
    monkeypatch.setattr(searcher, "forget_functions", lambda: [forget(), kept.append(len(searcher._compiled))])
    "".join(generator.stream("the red", 9, SearchOptions(beam_size=1)))
    assert searcher._compiled
    for top_k in range(1, 6):
        options = {"sampling": True, "seed": top_k, "top_k": top_k, "temperature": 1.5}
        streams.append("".join(generator.stream("the red", 9, SearchOptions(**options))))
        assert len(searcher._compiled) <= 3
    assert kept in ([0], [0, 0])
    (expected,) = t2t_lite.Generator.load(str(export_dir)).generate(["the red"], max_new_tokens=9, **options)
    assert streams[-1] == expected.text and len(expected.text) > 4


@pytest.mark.parametrize("settings", [{"stop": "{}"}, {"banned_texts": "x{}"}, {"max_new_tokens": 8}])
def test_traces_for_any_texts_and_lengths_do_not_pile_up(generator, monkeypatch, settings):
    monkeypatch.setattr(served_generator, "_MOST_TRACED", 2)
    searcher = generator._generator.searcher
    for number in range(1, 5):
        texts = {name: (text.format(number),) for name, text in settings.items() if isinstance(text, str)}
        room = 8 * number if "max_new_tokens" in settings else 2
        "".join(generator.stream("the red", room, SearchOptions(beam_size=1, **texts)))
        assert len(searcher._compiled) <= 2


def test_scores_are_those_of_generator(export_dir, generator):
    """Of ids and of texts; the most probable ids are those of the whole distribution, and never padding."""
    rows = [generator.ids_of(text) for text in ("the red", "Haus", "ein grün Baum")]
    found = generator.scores(rows, 3)
    expected = t2t_lite.Generator.load(str(export_dir)).score(rows)
    for row, scores, score in zip(rows, found, expected, strict=True):
        np.testing.assert_allclose(scores.log_probs, score.token_log_probs, atol=1e-5)
        assert np.all(np.diff(scores.top_log_probs) <= 0) and np.all(scores.top_ids > 0)
        is_top = scores.top_ids == np.array(row)[:, None]
        np.testing.assert_array_equal(scores.top_log_probs[is_top], scores.log_probs[is_top.any(1)])
        assert np.all((scores.log_probs < scores.top_log_probs[:, -1]) | is_top.any(1))
    every = generator.scores(rows[:1], 10**6)[0]
    np.testing.assert_allclose(np.exp(every.top_log_probs).sum(1), 1, atol=0.02)  # all ids but padding


def test_the_next_id_is_that_of_a_stream(generator):
    prompt = [generator.ids_of(text) for text in ("the red", "", "\u00fc", "der rote Haus")] + [[1]]
    request = {"prompt": prompt, "max_tokens": 1, "logprobs": 2, "echo": True}
    answers = []
    for more in ({}, {"stop": ["never"]}):  # by one pass; by streams and a pass
        parsed = CompletionRequest.parse(request | more, SearchOptions(beam_size=1), 9)
        completion = Completions(1).open(generator, parsed, "m", lambda: False)
        answers.append(completion.whole()["choices"])
        completion.close()
    assert [choice["text"] for choice in answers[0]] == [choice["text"] for choice in answers[1]]
    for one, other in zip(*answers, strict=True):
        assert one["logprobs"]["tokens"] == other["logprobs"]["tokens"]
        values = [choice["logprobs"]["token_logprobs"] for choice in (one, other)]
        first = [of_answer.pop(0) if len(of_answer) > 1 else 0 for of_answer in values]
        assert first in ([None, None], [0, 0]) and values[0] == pytest.approx(values[1], abs=1e-5)


def test_prompts_that_are_not_read_as_a_whole_are_refused_where_all_of_their_ids_count(generator):
    ids = generator.ids_of("the red")[:1] * 20
    assert len(generator.stream(ids, 5, SearchOptions(beam_size=1)).prompt_ids) == 15
    assert generator.read(ids, False).source == ids and generator.read(ids[:15], True).ids == ids[:15]
    for prompt in (ids[:16], "the red house " * 8, "the red " * 10**6):
        with pytest.raises(Refusal, match=r"^prompt: [\d,]+ (ids are more than the|characters do not fit into) 15 "):
            generator.read(prompt, True)


def test_an_export_of_something_else_is_refused_by_name(tmp_path, monkeypatch):
    echo = tf.function(lambda inputs: {"outputs": inputs}, input_signature=[tf.TensorSpec([None], tf.string)])
    monkeypatch.setattr(TextSignatures, "functions", lambda self: {"serving_default": echo})
    monkeypatch.setattr(TextSignatures, "warmup", lambda self: [])
    export_saved_model(t2t_lite.load(str(make_run(tmp_path / "a"))), str(tmp_path / "export"))
    versions = ModelVersions("m", str(tmp_path / "export"), load_with_generator)
    with pytest.raises(UserError, match=r"export/1: --max_streams .*translate_own is sequence_to_sequence"):
        versions.refresh()
    assert "--max_streams" in versions.states()[0][3]
