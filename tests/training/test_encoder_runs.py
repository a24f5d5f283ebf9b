"""Runs of encoders, on classes, tags, numbers, answers and masked ids: what they learn, on replicas, and in parts."""

import json
import random

import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite import registry
from t2t_lite.bin import t2t_decoder
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.evaluation.answer_scores import read_predictions, read_reference
from t2t_lite.runs.checkpoint_files import checkpoint_step
from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
from t2t_lite.training.monitor import best_checkpoint
from t2t_lite.training.settings import EarlyStopping
from t2t_lite.training.training_data import open_training_data
from tests.registered import registered
from tests.training.runs import assert_replicas_and_parts_give_one_run, log, trainer

pytestmark = pytest.mark.slow

NAMES = ["Ada", "Bob", "Cy", "Dee"]
COUNT = 120  # of examples
SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,learning_rate_schedule=constant"
EXACT = f"{SIZES},attention_dropout=0,layer_prepostprocess_dropout=0"


def sentence(draw):
    words = draw.choices([*NAMES, "sees", "a", "dog", "and"], k=draw.randint(3, 8))
    return words, ["B-PER" if word in NAMES else "O" for word in words]


def conll(draw):
    return "\n".join("".join(map("{}\t{}\n".format, *sentence(draw))) for _ in range(COUNT))


def classes(draw):
    every = [sentence(draw)[0] for _ in range(COUNT)]
    return "".join(f"{'names' if words[0] in NAMES else 'words'}\t{' '.join(words)}\n" for words in every)


def numbers(draw):
    # No text twice: rounding, which depends on the batch, would decide whether its numbers have one rank or two.
    every = dict.fromkeys(tuple(sentence(draw)[0]) for _ in range(COUNT))
    return "".join(f"{sum(word in NAMES for word in words)}\t{' '.join(words)}\n" for words in every)


def questions(draw):
    found = []
    for number in range(COUNT):
        words, answer = sentence(draw)[0], draw.choice(NAMES)
        context = " ".join([*words, answer, "sleeps"])
        answers = [{"text": answer, "answer_start": len(" ".join(words)) + 1}]
        qas = [{"id": str(number), "question": "who sleeps", "answers": answers}]
        found.append({"context": context, "qas": qas})
    return json.dumps({"data": [{"paragraphs": found}]})


PROBLEMS = registered({  # {problem: (text of its files, their suffix, metric, further metrics)}
    "classify_own": (classes, "tsv", "f1_macro", "f1_macro/mcc"),
    "tag_own": (conll, "conll", "entity_f1", ""),
    "regress_own": (numbers, "tsv", "spearman", ""),
    "qa_own": (questions, "json", "squad_f1", ""),
})  # fmt: skip


@pytest.fixture(scope="module", params=PROBLEMS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def data(name, tmp_path_factory):
    """A folder with the problem's data, and with the files train and dev that these are made of."""
    folder, draw = tmp_path_factory.mktemp(name), random.Random(1)
    text, suffix, *_ = PROBLEMS[name]
    paths = [folder / f"{split}.{suffix}" for split in ("train", "dev")]
    for path in paths:
        path.write_text(text(draw))
    problem = registry.problem(name)
    rows = {"sequence_length": 100} if name == "qa_own" else {}  # the set's table has room for 127
    problem.configure([str(paths[0])], [str(paths[1])], vocab_size=300, **rows)
    problem.generate_data(str(folder), str(folder))
    return folder


def run(name, data, output_dir, hparams="", **settings):
    named = {"problem": name, "hparams_set": "bert_tiny", "model": "transformer"}
    return trainer(str(data), output_dir, f"{EXACT},learning_rate_constant=0.01{hparams}", **named, **settings)


@pytest.mark.long
def test_it_is_learned_and_evaluated_by_its_answers(name, data, tmp_path):
    """On two replicas, later by t2t-eval's code, and from what t2t-decoder writes."""
    _, suffix, metric, more = PROBLEMS[name]
    evaluates = {"evaluates": True, "local_eval_frequency": 20, "best_checkpoint_metric": metric}
    stops = EarlyStopping(steps=1000, metric=metric)
    made = run(name, data, tmp_path / "run", f",batch_size=1024,eval_metrics={more}", logical_cpus=2,
               early_stopping=stops, **evaluates)  # fmt: skip
    metrics = made.train(60)
    assert metrics[metric] > 0.3 and ("perplexity" in metrics) == (name != "regress_own")
    logged = {line["step"]: line[metric] for line in log(tmp_path / "run", "evaluation")}
    assert [*logged] == [20, 40, 60]
    assert logged[checkpoint_step(best_checkpoint(str(tmp_path / "run")))] == max(logged.values())
    later = CheckpointEvaluation(
        str(tmp_path / "run"), str(data), change_hparams=lambda trained: trained.override_from_dict({"batch_size": 100})
    ).newest()
    assert later.keys() == metrics.keys() and later[metric] == pytest.approx(metrics[metric], abs=1e-6)
    inputs, reference = data / f"dev.{suffix}", read_reference(str(data / f"dev.{suffix}"), registry.problem(name).task)
    if suffix == "tsv":  # without the column of classes and numbers
        texts = [line.partition("\t")[2] for line in inputs.read_text().splitlines(keepends=True)]
        inputs = tmp_path / "texts"
        inputs.write_text("".join(texts))
    flags = f"--output_dir={tmp_path / 'run'}", f"--decode_from_file={inputs}", f"--decode_to_file={tmp_path / 'out'}"
    assert t2t_decoder.main([*flags]) == 0
    predicted = read_predictions(str(tmp_path / "out"), reference)
    score = registry.task(registry.problem(name).task).metrics[metric](predicted, reference.answers)
    assert score == pytest.approx(metrics[metric], abs=1e-3)


def test_texts_are_not_segmented_anew_where_targets_belong_to_pieces(name, data):
    hparams = registry.hparams("bert_tiny").parse("bpe_dropout=0.1,batch_size=128,max_length=40")
    if name in ("regress_own", "classify_own"):
        assert 100 < open_training_data(name, hparams, str(data)).examples <= COUNT
        return
    with pytest.raises(UserError, match=rf"bpe_dropout=0\.1: .* {name} "):
        open_training_data(name, hparams, str(data))


@pytest.mark.few("tag_own")
def test_what_is_cut_to_the_longest_row_is_counted(name, data):
    if name == "qa_own":
        pytest.skip("its contexts are read in windows, none is cut")
    found = open_training_data(name, registry.hparams("bert_tiny").parse("max_length=7,batch_size=64"), str(data))
    assert 100 < found.examples <= COUNT and found.dropped == 0
    assert all(0 < found.cut[split] < found.examples for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL))
    for batch in found.batches.take(20):
        assert batch["inputs"].shape[1] <= 7
        assert (tf.reduce_sum(tf.cast(batch["inputs"] == 1, tf.int32), 1).numpy() == 1).all()


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Folders with text, with the order of its sentences, and with sentences of two classes in its vocabulary."""
    folder, draw = tmp_path_factory.mktemp("encoder"), random.Random(1)
    words = {"warm": ["sun", "fire", "summer", "coffee"], "cold": ["snow", "ice", "winter", "frost"]}
    lines = [f"{kind}\tI like {draw.choice(words[kind])} and {draw.choice(words[kind])}" for kind in [*words] * 150]
    (folder / "a.tsv").write_text("\n".join(lines))
    (folder / "a.txt").write_text("\n".join(line.partition("\t")[2] for line in lines))
    for name, kind, more in (
        ("masked_lm_own", "txt", {"sequence_length": 31, "vocab_size": 310}),
        ("classify_own", "tsv", {"vocab_from": [str(folder / "masked_lm_own")]}),
        ("sentence_order_own", "txt", {"sequence_length": 31, "vocab_from": [str(folder / "masked_lm_own")],
                                       "mask_unit": "ngram"}),
    ):  # fmt: skip
        problem = registry.problem(name)
        problem.configure([str(folder / f"a.{kind}")], [str(folder / f"a.{kind}")], **more)
        problem.generate_data(str(folder / name), str(folder))
    return folder


def own(texts, problem, output_dir, hparams, hparams_set="bert_tiny", **settings):
    named = {"problem": problem, "hparams_set": hparams_set, "model": "transformer"}
    return trainer(str(texts / problem), output_dir, f"{SIZES},batch_size=128{hparams}", **named, **settings)


@pytest.mark.long
def test_two_replicas_are_two_batches_of_one_and_a_run_in_parts_is_that_in_one(texts, tmp_path):
    """On masked ids and the order of sentences, with two layers that share their weights, as ALBERT's do."""

    def ordered(output_dir, hparams="", **settings):
        sizes = f",num_hidden_layers=2,embedding_size=8,max_position=64{hparams}"
        of_set = SIZES.replace("num_hidden_layers=1,", "")
        named = {"problem": "sentence_order_own", "hparams_set": "albert_base", "model": "transformer"}
        return trainer(
            str(texts / "sentence_order_own"), output_dir, f"{of_set},batch_size=128{sizes}", **named, **settings
        )

    assert_replicas_and_parts_give_one_run(ordered, tmp_path, 2)
    assert log(tmp_path / "parts", "progress")[-1]["loss_sentence"] > 0


@pytest.mark.long
def test_a_classifier_goes_on_from_masked_words(texts, tmp_path):
    rate = ",learning_rate_constant=0.003,attention_dropout=0.1,layer_prepostprocess_dropout=0.1"
    own(texts, "masked_lm_own", tmp_path / "masked", rate).train(60)
    more = {"evaluates": True, "local_eval_frequency": 200, "warm_start_from": str(tmp_path / "masked")}
    metrics = own(texts, "classify_own", tmp_path / "classes", rate, **more).train(200)
    assert metrics["accuracy"] == 1
    predictor = t2t_lite.load(str(tmp_path / "classes"))
    assert [p.label for p in predictor.predict(["I like frost and ice", "I like sun and fire"])] == ["cold", "warm"]
