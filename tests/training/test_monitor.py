"""What follows from a run's evaluations, around an evaluator and metrics that are written by hand."""

# Nearest tests of: t2t_lite/training/evaluator.py

import contextlib
import types

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.problem import Problem
from t2t_lite.errors import UserError
from t2t_lite.runs.log import RunLog
from t2t_lite.settings.config import HParams
from t2t_lite.training.cluster import Cluster
from t2t_lite.training.distribution import Replicas
from t2t_lite.training.evaluator import Evaluation, evaluate_and_log
from t2t_lite.training.monitor import Monitor, check_metrics, history, reason_to_stop, write_translations
from t2t_lite.training.settings import EarlyStopping, EvaluationSettings

TEXTS = [(f"input {n}", f"output {n}", f"reference {n}") for n in range(7)]
ALONE = Replicas(None, 1, "one device")


def context(folder, evaluation=EvaluationSettings()):  # noqa: B008
    """Returns what a `Monitor` reads of a `RunContext`."""
    facts = {"output_dir": str(folder), "log": RunLog(str(folder)), "replicas": ALONE, "evaluation": evaluation}
    return types.SimpleNamespace(**facts)


class Shown:
    """An evaluator whose loss and BLEU are looked at first."""

    def shown(self, names):
        return [name for name in names if name in ("loss", "bleu")]


class Falling(Shown):
    """An evaluator whose loss falls by 1 at each call."""

    def __init__(self, texts=(), takes=None, **more):
        self.loss, self.texts, self.takes, self.more = 9.0, list(texts), takes, more

    def __call__(self):
        self.loss -= 1
        self.takes and self.takes()
        return Evaluation({"loss": self.loss, **self.more}, self.texts, {"bleu_signature": "nrefs:1"})


def evaluations_of(folder):
    return [line for line in RunLog(str(folder)).read() if line["event"] == "evaluation"]


def test_the_log_remembers_what_came_of_it(tmp_path):
    log, evaluator = RunLog(str(tmp_path)), Falling(bleu=12.5, mine=1.0)
    assert history(log) == []
    for step in (6, 3, 6):
        evaluate_and_log(evaluator, log, step, split="dev")
    expected = [(3, {"loss": 7.0, "bleu": 12.5, "mine": 1.0}), (6, {"loss": 6.0, "bleu": 12.5, "mine": 1.0})]
    assert history(RunLog(str(tmp_path))) == expected  # the last one counts
    lines = evaluations_of(tmp_path)
    assert {line["bleu_signature"] for line in lines} == {"nrefs:1"} and {line["split"] for line in lines} == {"dev"}
    log.write("resume", 4)
    assert [step for step, _ in history(log)] == [3]  # step 6 will be done again


def test_texts_go_to_whom_they_are_for_and_five_to_tensorboard(tmp_path, monkeypatch):
    given, shown, drawn, texts = [], [], [], [("a|b", "c", "d"), *TEXTS]
    monkeypatch.setattr(RunLog, "text", lambda self, *args: shown.append(args))
    monkeypatch.setattr(RunLog, "scalars", lambda self, *args: drawn.append(args))
    evaluate_and_log(Falling(texts), RunLog(str(tmp_path)), 3, "eval_x", on_texts=lambda *args: given.append(args))
    assert given == [(3, texts)] and drawn == [(3, {"loss": 8.0}, "eval_x")]
    ((step, name, table, folder),) = shown
    rows = ["| input | output | reference |", "|-|-|-|", "| a&#124;b | c | d |"]
    assert (step, name, folder) == (3, "translations", "eval_x")
    assert table.splitlines() == rows + [f"| {' | '.join(row)} |" for row in TEXTS[:4]]


def test_a_line_shows_some_metrics_and_the_log_has_all(tmp_path, caplog, clock):
    metrics = {"loss": 2.0, "perplexity": 7.389, "chrf": 30.0, "bleu": 12.5}

    settings = EvaluationSettings(best_checkpoint_metric="chrf")
    evaluator = Constant(**metrics)
    evaluator.takes = lambda: clock.advance(2.0625)
    Monitor(context(tmp_path, settings), evaluator).evaluate(3, is_last=False)
    assert caplog.messages[0] == "evaluation at step 3: loss 2.0000  chrf 30.0000  bleu 12.5000  (2.1 s)"
    (line,) = evaluations_of(tmp_path)
    assert metrics.items() <= line.items() and line["seconds"] == 2.062


def test_every_line_shows_the_value_of_the_log(tmp_path, caplog):
    exact, logged = 1.16424951, 1.16425  # with four decimals 1.1642 and 1.1643
    assert f"{exact:.4f}" != f"{logged:.4f}"
    log = RunLog(str(tmp_path))
    assert evaluate_and_log(Constant(bleu=exact), log, 3) == history(log)[0][1] == {"bleu": logged}
    assert f"bleu {logged:.4f}  (" in caplog.messages[0]


class Best:
    def __init__(self):
        self.seen = []

    def __call__(self, history):
        self.seen.append([step for step, _ in history])


def watched(folder, best=None, early_stopping=None, throttle=0, evaluates=True, takes=None):
    settings = EvaluationSettings(eval_throttle_seconds=throttle, early_stopping=early_stopping or EarlyStopping())
    return Monitor(context(folder, settings), Falling(takes=takes) if evaluates else None, best)


def test_what_was_left_undone_is_made_up_for(tmp_path):
    """Killed after a checkpoint: its evaluation is made where one is due; the best model is looked for in any case."""
    best = Best()
    of_run = watched(tmp_path, best)
    assert of_run.catch_up(2, is_due=False) == {}
    assert of_run.catch_up(3, is_due=True) == {"loss": 8.0}
    assert of_run.catch_up(3, is_due=True) == {"loss": 8.0}  # logged: not again
    assert [line["step"] for line in evaluations_of(tmp_path)] == [3]
    assert best.seen == [[], [3], [3]]


class Constant(Shown):
    """An evaluator with the same metrics each time."""

    def __init__(self, **metrics):
        self.metrics, self.takes = metrics, lambda: None

    def __call__(self):
        self.takes()
        return Evaluation(self.metrics)


@pytest.mark.parametrize(
    ("first_bleu", "last", "said_at"), [(0.0, 2, 2), (0.0, 3, 3), (0.0, 5, 3), (0.0, 1, None), (0.1, 3, None)]
)
def test_a_metric_that_is_always_0_is_said_once(tmp_path, caplog, first_bleu, last, said_at):
    evaluator = Constant(loss=1.0, bleu=first_bleu, token_accuracy=first_bleu, chrf=0.1, ter=0.0, unknown=0.0)
    of_run = Monitor(context(tmp_path), evaluator)
    for step in range(1, last + 1):
        of_run.evaluate(step, is_last=step == last)
        said = [message for message in caplog.messages if " stayed at 0 in all" in message]
        assert len(said) == (said_at is not None and step >= said_at)
        evaluator.metrics |= {"bleu": 0.0, "token_accuracy": 0.0}
    for message in said:
        assert message.startswith(f"bleu and token_accuracy stayed at 0 in all {said_at} evaluations.")
        assert "--tokenization" in message


def test_bleu_of_another_tokenization_is_not_compared(tmp_path):
    log = RunLog(str(tmp_path))
    for step, tokenization in enumerate(("13a", None, "zh", "zh"), 1):
        signature = {"bleu_signature": f"nrefs:1|tok:{tokenization}|version:2"} if tokenization else {}
        log.write("evaluation", step, loss=1.0, bleu=10.0 * step, **signature)
    assert [metrics.get("bleu") for _, metrics in history(log)] == [None, None, 30.0, 40.0]
    log.write("evaluation", 5, loss=1.0, bleu=50.0, bleu_signature="nrefs:1|tok:13a|version:3")
    assert [metrics.get("bleu") for _, metrics in history(log)] == [10.0, 20.0, None, None, 50.0]


def test_an_evaluation_of_another_dev_set_is_not_compared(tmp_path, caplog):
    evaluator, best = Constant(loss=1.0), Best()
    evaluated = {"records": "a", "eval_steps": 0, "search": {"stop": ("x", "y")}}

    def evaluate(step, **changes):
        Monitor(context(tmp_path), evaluator, best, settings=evaluated | changes).evaluate(step, is_last=False)
        return best.seen.pop()

    RunLog(str(tmp_path)).write("evaluation", 1, loss=1.0)  # of an earlier version
    assert evaluate(2) == [1, 2] and evaluate(3) == [1, 2, 3]
    assert not [message for message in caplog.messages if "changed" in message]
    assert evaluate(4, records="b", eval_steps=5) == [1, 4] and evaluate(5, records="b", eval_steps=5) == [1, 4, 5]
    assert evaluate(6) == [1, 2, 3, 6]
    changed = {**evaluated, "records": "c"}
    assert Monitor(context(tmp_path), evaluator, best, settings=changed).catch_up(6, is_due=True) == {"loss": 1.0}
    assert best.seen.pop() == [1] and len(evaluations_of(tmp_path)) == 6  # nothing is evaluated again


def test_a_change_of_the_dev_set_is_told_once(tmp_path, caplog):
    for step, records in enumerate("aabb"):
        settings = {"records": records, "eval_steps": int(records == "b")}
        Monitor(context(tmp_path), Constant(loss=1.0), Best(), settings=settings).evaluate(step, is_last=False)
    (told,) = [message for message in caplog.messages if "changed" in message]
    assert told.startswith("the dev set, eval_steps changed since the last evaluation.")


def test_an_evaluation_that_comes_too_soon_is_left_out(tmp_path, clock):
    """Between their starts are at least 10 s; an evaluation takes 4 s."""
    of_run, made_at, start = watched(tmp_path, throttle=10, takes=lambda: clock.advance(4.0)), [], clock.now
    for step, seconds in enumerate((0.0, 9.0, 10.0, 15.0, 25.0), 1):
        clock.now = start + seconds
        made_at.append(bool(of_run.evaluate(step, is_last=step == 4)))
    assert made_at == [True, False, True, True, True]


def test_what_others_decide_ends_all_machines(tmp_path):
    """One of them evaluates; all add up whether it has a reason, and a caller's own reason comes after the rule's."""
    stops, summed = EarlyStopping(1, "loss", 100.0), []

    def monitor(evaluates, total, early_stopping=stops, **more):
        settings = EvaluationSettings(early_stopping=early_stopping)
        replicas = Replicas(None, 2, "two", Cluster(("a:1", "b:1"), 0 if evaluates else 1))
        replicas.sum = lambda value: summed.append(float(value)) or tf.constant(total)
        facts = context(tmp_path, settings)
        facts.replicas = replicas
        return Monitor(facts, Falling() if evaluates else None, **more)

    for step in (1, 2):
        monitor(True, 0.0).evaluate(step, is_last=False)
    tf.config.run_functions_eagerly(True)
    try:
        assert "it was 8 at step 1" in monitor(True, 1.0).reason_to_stop()
        assert monitor(False, 1.0).reason_to_stop() and monitor(False, 0.0).reason_to_stop() is None
        own = {"early_stopping": EarlyStopping(), "stop_when": lambda evaluations: f"seen {len(evaluations)}"}
        assert monitor(True, 1.0, **own).reason_to_stop() == "seen 2"
        assert "loss improved by less than 100" in monitor(True, 1.0, stop_when=own["stop_when"]).reason_to_stop()
    finally:
        tf.config.run_functions_eagerly(False)
    assert summed == [1.0, 0.0, 0.0, 1.0, 1.0]


def test_a_run_without_evaluations_has_none(tmp_path):
    of_run = watched(tmp_path, evaluates=False, early_stopping=EarlyStopping(1))
    assert of_run.evaluate(3, is_last=True) == of_run.catch_up(3, is_due=True) == {}
    assert of_run.reason_to_stop() is None


def test_the_reason_to_stop_is_that_of_the_history(tmp_path):
    of_run = watched(tmp_path, early_stopping=EarlyStopping(6, "loss", 1.5))
    whys = []
    for step in (3, 6, 9):
        of_run.evaluate(step, is_last=False)
        whys.append(of_run.reason_to_stop())
    assert whys == [None] * 3, "8 to 6 is a move of 2"
    stopping = watched(tmp_path, early_stopping=EarlyStopping(6, "loss", 2.5))
    assert "it was 8 at step 3" in stopping.reason_to_stop()
    assert watched(tmp_path, early_stopping=EarlyStopping(0, "loss", 2.5)).reason_to_stop() is None


def several_outputs(batch, training):
    """A model that predicts the inputs, too, and has a cost of the targets."""
    logits = {feature: tf.one_hot(ids, 5) for feature, ids in batch.items()}
    return {**logits, "costs": {"targets": tf.ones_like(batch["targets"], tf.float32)}}


def check(examples=5, **settings):
    hparams, problem = HParams(eval_decode_examples=examples), Problem()
    problem.eval_decode_metric = "bleu"
    check_metrics(several_outputs, problem, hparams, EvaluationSettings(**settings))


EARLY, KEPT = "--eval_early_stopping_metric=", "--best_checkpoint_metric="
METRICS = [  # (settings, what is said of them; None: nothing)
    ({}, None),
    *(({"best_checkpoint_metric": name}, None) for name in ("bleu", "chrf", "none", "cost_targets")),
    ({"best_checkpoint_metric": "loss", "examples": 0}, None),
    ({"best_checkpoint_metric": "bleu", "examples": 0, "translate_all": True}, None),
    *(({"early_stopping": EarlyStopping(5, name)}, None) for name in ("loss_inputs", "bleu")),
    ({"early_stopping": EarlyStopping(None, "loss_label")}, None),
    *(({"early_stopping": EarlyStopping(5, name, metric_minimize=is_loss)}, None)
      for name, is_loss in (("bleu", False), ("loss", True))),
    ({"early_stopping": EarlyStopping(5, "bleu", metric_minimize=True)}, "minimize=true: .*bleu, a higher value is"),
    ({"early_stopping": EarlyStopping(5, "loss", metric_minimize=False)}, "minimize=false: .*loss, a lower value is"),
    ({"early_stopping": EarlyStopping(5, "blue")}, f"{EARLY}blue: .* Nearest: bleu"),
    ({"early_stopping": EarlyStopping(5, "bleu"), "examples": 0}, f"{EARLY}bleu: "),
    ({"best_checkpoint_metric": "bleu", "examples": 0}, f"{KEPT}bleu: "),
    ({"best_checkpoint_metric": "blue"}, f"{KEPT}blue: .* Nearest: bleu"),
    ({"best_checkpoint_metric": "cost_inputs"}, "Expected one of loss, .*, bleu, loss_inputs, cost_targets, or none"),
    ({"best_checkpoint_metric": "loss_targets"}, f"{KEPT}loss_targets: "),
    ({"best_checkpoint_metric": "cost_targets", "eval_stride": 5}, f"{KEPT}cost_targets: "),
    ({"early_stopping": EarlyStopping(5, "loss_label")}, f"{EARLY}loss_label: .* Expected .*, loss_inputs, "),
]  # fmt: skip


@pytest.mark.parametrize(("given", "words"), METRICS)
def test_metrics_that_a_run_will_not_have_are_refused(given, words):
    with pytest.raises(UserError, match=words) if words else contextlib.nullcontext():
        check(**given)


@registry.register_metric(feature="inputs")
def monitored_inputs(logits, labels):
    return tf.reduce_sum(logits), tf.size(labels)


@registry.register_metric(feature="label")
def monitored_label(logits, labels):
    return tf.reduce_sum(logits), tf.size(labels)


def test_a_metric_of_a_feature_that_the_model_does_not_predict_is_refused_before_it_trains(monkeypatch):
    monkeypatch.setattr(Problem, "eval_metrics", lambda self: ["token_accuracy", "monitored_inputs"])
    check()
    monkeypatch.setattr(Problem, "eval_metrics", lambda self: ["monitored_label"])
    with pytest.raises(UserError, match=r"metric monitored_label measures 'label', .* predicts targets, inputs"):
        check()


def test_translations_are_files_of_a_line_each(tmp_path):
    write_translations(str(tmp_path), 7, [("a", "b\nb", "c\u00a0!"), ("d", "", "f  g")])
    found = {path.name: path.read_text() for path in (tmp_path / "decode").iterdir()}
    assert found == {"dev-7.inputs": "a\nd\n", "dev-7.decodes": "b b\n\n", "dev-7.targets": "c\u00a0!\nf  g\n"}


@pytest.mark.parametrize(
    ("steps", "values", "expected"),
    {
        "no evaluation is old enough": ([10, 20], [3.0, 3.0], False),
        "nothing moved": ([10, 20, 30, 40], [3.0, 3.0, 3.0, 3.0], True),
        "a move of just delta counts": ([10, 20, 30, 40], [3.0, 3.0, 2.5, 3.0], False),
        "a smaller one does not": ([10, 20, 30, 40], [3.0, 3.0, 2.75, 3.0], True),
        "the newest of the old ones is to be beaten": ([10, 20, 30, 40, 50], [1.0, 3.0, 2.0, 2.0, 2.0], False),
        "what came before it does not count": ([10, 20, 30, 40, 50], [9.0, 3.0, 3.0, 3.0, 3.0], True),
        "worse is no move": ([10, 20, 30, 40], [3.0, 5.0, 6.0, 7.0], True),
    }.values(),
)
def test_when_a_metric_has_plateaued(steps, values, expected):
    for metric, sign in (("loss", 1), ("bleu", -1)):
        history = [(step, {metric: sign * value}) for step, value in zip(steps, values, strict=True)]
        assert bool(reason_to_stop(EarlyStopping(30, metric, 0.5), history)) == expected


def points(name, values):
    return [(10 * (i + 1), {name: value}) for i, value in enumerate(values)]


def test_the_direction_is_the_metrics_own():
    rising = [1.0, 2.0, 3.0, 4.0]
    assert reason_to_stop(EarlyStopping(20, "bleu", 0.5), points("bleu", rising)) is None
    why = reason_to_stop(EarlyStopping(20, "loss", 0.5), points("loss", rising))
    assert "it was 2 at step 20, and at best 3 in the 20 steps since; to continue, set --eval_early_stopping" in why


def test_off_or_without_the_metric_it_never_stops():
    assert reason_to_stop(EarlyStopping(), points("loss", [1.0] * 9)) is None
    assert reason_to_stop(EarlyStopping(10, "bleu"), points("loss", [1.0] * 9)) is None
    assert reason_to_stop(EarlyStopping(10), []) is None
