"""A program such as users write, for a type checker: see test_types.py. It is never run."""

from typing import assert_type

import keras
import numpy as np

import t2t_lite
from t2t_lite import Generator, HParams, Predictor, Translator, registry
from t2t_lite.data.problem import Problem, Text2TextProblem
from t2t_lite.decoding.generator import Generation
from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.decoding.scoring import TargetScore
from t2t_lite.evaluation.scores import Score, corpus_bleu
from t2t_lite.layers import FeedForward, MultiHeadAttention, TokenEmbedding, TransformerEncoderLayer, TransformerStack
from t2t_lite.models import Transformer
from t2t_lite.tasks.masked_language_model import Candidate
from t2t_lite.training import BleuCallback, EvaluationSettings, MaskedAccuracy, SmoothedCrossEntropy, Trainer


@registry.register_problem
class Own(Text2TextProblem):
    def generate_samples(self, data_dir: str, tmp_dir: str, dataset_split: str):
        yield {"inputs": "one", "targets": "eins"}


@registry.register_hparams("own_set")
def own_set() -> HParams:
    return registry.hparams("transformer_base").parse("num_heads=4")


def registered() -> None:
    assert_type(Own, type[Own])  # decorators return what they decorate
    assert_type(own_set(), HParams)
    problem = registry.problem("translate_ende_wmt37k")
    assert_type(problem, Problem)
    assert_type(registry.list_models(), list[str])
    hparams = HParams.from_json(own_set().to_json())
    assert_type(hparams, HParams)
    assert_type(hparams.hidden_size, int)
    hparams.add_hparam("mine", 1)
    batches = problem.dataset("data", "train", hparams)
    model = Transformer.from_hparams(hparams, 37000)
    assert_type(model, Transformer)
    model.compile(keras.optimizers.Adam(1e-3), SmoothedCrossEntropy(0.1), metrics=[MaskedAccuracy()])
    model.fit(batches, steps_per_epoch=1, callbacks=[BleuCallback(problem, "data", beam_size=1)])
    model.quantize("int8")
    assert_type(model.save_run("run", problem=problem, data_dir="data"), str)
    assert_type(t2t_lite.models.TransformerLM.from_run("run"), t2t_lite.models.TransformerLM)
    evaluation = EvaluationSettings(eval_steps=10)
    metrics = Trainer(problem="own", hparams=hparams, output_dir="run", evaluation=evaluation).train(1000)
    assert_type(metrics, dict[str, float])


def answers() -> None:
    translator = Translator.load("run", compute_dtype="float32")
    assert_type(translator, Translator)
    (translation,) = translator.translate(["A house."], beam_size=4, alpha=0.6, return_attention=True)
    assert_type(translation, Translation)
    assert_type(translation.text, str)
    assert_type(translation.attention, np.ndarray | None)
    assert_type(translation.hypotheses[0], Hypothesis)
    assert_type(translator.score(["a"], ["b"])[0], TargetScore)
    generations = Generator.load("run").generate(["Once"], max_new_tokens=5, sampling=True)
    assert_type(generations, list[Generation])
    assert_type(generations[0].ids, list[int])
    predictor = Predictor.load("run")
    assert_type(predictor.fill_mask(["A [MASK]."])[0][0][0], Candidate)
    print(predictor.predict(["A house."])[0].label)
    assert_type(t2t_lite.load("run"), Translator | Generator | Predictor)
    assert_type(corpus_bleu(["a"], ["a"]), Score)
    t2t_lite.export.export_saved_model(translator, "export", max_input_length=64)


def layers() -> None:
    embedding = TokenEmbedding(vocab_size=100, hidden_size=8, mask_zero=True)
    stack = TransformerStack([TransformerEncoderLayer(MultiHeadAttention(2).num_heads, 16, activation="gelu")])
    ids = keras.Input((None,), dtype="int32")
    keras.Model(ids, embedding(FeedForward(16)(stack(embedding(ids))), reverse=True))


def mistakes() -> None:
    """Each comment is needed: `reportUnnecessaryTypeIgnoreComment` is on."""
    registry.hparams(3)  # pyright: ignore[reportArgumentType]
    Transformer("37000")  # pyright: ignore[reportArgumentType]
    FeedForward(filter_size="16")  # pyright: ignore[reportArgumentType]
    print(Translator.load("run").translate(["a"])[0].txt)  # pyright: ignore[reportAttributeAccessIssue]
    print(t2t_lite.no_such_name, t2t_lite.training.Trainr)  # pyright: ignore[reportAttributeAccessIssue]
