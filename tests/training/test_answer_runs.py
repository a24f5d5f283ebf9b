"""Runs that are evaluated by whole answers: on two replicas, later by t2t-eval, and of what t2t-decoder writes."""

import json
import random

import pytest

from t2t_lite import registry
from t2t_lite.bin import t2t_decoder
from t2t_lite.evaluation.answer_scores import read_predictions, read_reference
from t2t_lite.runs.checkpoint_files import checkpoint_step
from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
from t2t_lite.training.monitor import best_checkpoint
from t2t_lite.training.settings import EarlyStopping
from tests.registered import registered
from tests.training.runs import log, trainer

pytestmark = pytest.mark.slow

SIZES = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=1024,learning_rate_schedule=constant,"
    "learning_rate_constant=0.01,attention_dropout=0,layer_prepostprocess_dropout=0"
)
NAMES = ["Ada", "Bob", "Cy", "Dee"]


def sentence(draw):
    words = draw.choices([*NAMES, "sees", "a", "dog", "and"], k=draw.randint(3, 8))
    return words, ["B-PER" if word in NAMES else "O" for word in words]


def conll(draw):
    return "\n".join("".join(map("{}\t{}\n".format, *sentence(draw))) for _ in range(120))


def classes(draw):
    every = [sentence(draw)[0] for _ in range(120)]
    return "".join(f"{'names' if words[0] in NAMES else 'words'}\t{' '.join(words)}\n" for words in every)


def numbers(draw):
    # No text twice: rounding, which depends on the batch, would decide whether its numbers have one rank or two.
    every = dict.fromkeys(tuple(sentence(draw)[0]) for _ in range(120))
    return "".join(f"{sum(word in NAMES for word in words)}\t{' '.join(words)}\n" for words in every)


def questions(draw):
    found = []
    for number in range(120):
        words, answer = sentence(draw)[0], draw.choice(NAMES)
        context = " ".join([*words, answer, "sleeps"])
        answers = [{"text": answer, "answer_start": len(" ".join(words)) + 1}]
        qas = [{"id": str(number), "question": "who sleeps", "answers": answers}]
        found.append({"context": context, "qas": qas})
    return json.dumps({"data": [{"paragraphs": found}]})


def inputs_of(problem, path):
    """The file that t2t-decoder reads: of classes and numbers without their column."""
    if problem in ("tag_own", "qa_own"):
        return path
    texts = path.with_name("texts")
    texts.write_text("".join(line.partition("\t")[2] for line in path.read_text().splitlines(keepends=True)))
    return texts


@pytest.mark.long
@pytest.mark.parametrize(
    "problem, task, text, metric, more",
    registered(
        [
            ("classify_own", "classification", classes, "f1_macro", "f1_macro/mcc"),
            ("tag_own", "tagging", conll, "entity_f1", ""),
            ("regress_own", "regression", numbers, "spearman", ""),
            ("qa_own", "spans", questions, "squad_f1", ""),
        ]
    ),
)
def test_a_run_is_evaluated_by_its_answers(problem, task, text, metric, more, tmp_path):
    draw, data, suffix = random.Random(1), tmp_path / "data", {"tagging": "conll", "spans": "json"}.get(task, "tsv")
    paths = {name: tmp_path / f"{name}.{suffix}" for name in ("train", "dev")}
    for path in paths.values():
        path.write_text(text(draw))
    made = registry.problem(problem)
    longest = {"sequence_length": 100} if problem == "qa_own" else {}  # the set's table has room for 127
    made.configure([str(paths["train"])], [str(paths["dev"])], vocab_size=300, **longest)
    made.generate_data(str(data), str(tmp_path))
    run = tmp_path / "run"
    named = {"problem": problem, "hparams_set": "bert_tiny", "model": "transformer", "evaluates": True}
    stops = EarlyStopping(steps=1000, metric=metric)
    hparams = f"{SIZES},eval_metrics={more}"
    settings = {"local_eval_frequency": 20, "logical_cpus": 2, "best_checkpoint_metric": metric}
    metrics = trainer(str(data), run, hparams, **named, **settings, early_stopping=stops).train(60)
    assert metrics[metric] > 0.3
    logged = {line["step"]: line[metric] for line in log(run, "evaluation")}
    assert [*logged] == [20, 40, 60]
    assert logged[checkpoint_step(best_checkpoint(str(run)))] == max(logged.values())
    later = CheckpointEvaluation(
        str(run), str(data), change_hparams=lambda trained: trained.override_from_dict({"batch_size": 100})
    ).newest()
    assert later.keys() == metrics.keys() and later[metric] == pytest.approx(metrics[metric], abs=1e-6)
    inputs, outputs = inputs_of(problem, paths["dev"]), tmp_path / "answers"
    given = f"--output_dir={run}", f"--decode_from_file={inputs}", f"--decode_to_file={outputs}"
    assert t2t_decoder.main([*given]) == 0
    reference = read_reference(str(paths["dev"]), task)
    predicted = read_predictions(str(outputs), reference)
    assert registry.task(task).metrics[metric](predicted, reference.answers) == pytest.approx(metrics[metric], abs=1e-3)
