"""Runs with a memory, and with patterns of several heads, through the decoder, the exporter and t2t-eval."""

import json

import numpy as np
import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite.decoding.generator import Generator
from t2t_lite.export.generation_signatures import GenerationSignatures
from tests.decoding.runs import SENTENCES, make_problem_run

HEADS = {
    "self_attention_type": "strided(stride=3):local_1d(block_length=4)+dot_product_relative_v2",
    "max_relative_position": 6,
}
RUNS = {"transformer_memory": {"segment_length": 32, "memory_length": 16}, "transformer_lm": HEADS}
PROMPTS = ["the red house is old", "", "der rote Haus ist alt und ein"]


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "data").mkdir()
    (folder / "text").write_text("".join(f"{sentence}\n" for sentence in SENTENCES), encoding="utf-8")
    problem, texts = t2t_lite.registry.problem("languagemodel_own"), [str(folder / "text")]
    problem.configure(train_files=texts, dev_files=texts, vocab_size=300, sequence_length=64)
    return make_problem_run(problem, request.param, folder, initializer_gain=3.0, **RUNS[request.param])


@pytest.mark.whole
@pytest.mark.slow
@pytest.mark.few("transformer_lm")
def test_a_generator_continues_as_the_whole_model(eager, run):
    generator = Generator.load(str(run))
    for text, continuation in zip(
        PROMPTS[:2], generator.generate(PROMPTS[:2], beam_size=1, max_new_tokens=3), strict=True
    ):
        prompt, new = np.array([generator.encode(text)], "int32").reshape(1, -1), []
        while len(new) < 3 and 1 not in new:
            batch = {"inputs": prompt, "targets": np.array([[*new, 2]], "int32")}
            new.append(int(np.argmax(generator.model(batch)[0, len(new)])))
        assert [i for i in new if i != 1] == continuation.ids


@pytest.mark.long
def test_an_export_gives_the_generators_answers(run):
    generator = Generator.load(str(run))
    functions = GenerationSignatures(generator, None, beam_size=2, extra_length=7).functions()
    inputs = tf.constant(PROMPTS)
    found = functions["serving_default"](inputs)["outputs"].numpy()
    expected = generator.generate(PROMPTS, beam_size=2, max_new_tokens=7)
    assert [text.decode() for text in found] == [g.text for g in expected]
    scores = functions["score"](inputs)["scores"].numpy()
    np.testing.assert_allclose(scores, [s.log_prob for s in generator.score(PROMPTS)], atol=1e-4)


@pytest.mark.whole
@pytest.mark.slow
def test_an_evaluation_may_have_a_longer_memory_where_there_is_one(run, call_command):
    flags = [f"--output_dir={run}", f"--data_dir={run.parent / 'data'}", "--eval_timeout_mins=0"]
    result = call_command("t2t-eval", *flags, "--hparams=eval_memory_length=48")
    hparams = json.loads((run / "hparams.json").read_text())
    if hparams["model"] == "transformer_memory":
        assert result.status == 0, result
        stride = call_command("t2t-eval", *flags, "--eval_stride=8")
        assert (stride.status, len(stride.stderr.splitlines())) == (2, 1) and "carries a state" in stride.stderr
    else:
        assert result.status == 2 and "eval_memory_length" in result.stderr
