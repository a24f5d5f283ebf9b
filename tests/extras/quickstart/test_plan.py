"""What t2t-quickstart chooses for a corpus, a machine and a time; its plan in the folder; records as texts."""

# Nearest tests of: extras/quickstart/commands.py

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.quickstart import commands as plans
from t2t_lite.extras.quickstart.commands import Plan, write_texts
from tests.data import corpus

REQUEST = {"train_files": ["a.en", "a.de"], "dev_files": [], "minutes": 30}


@pytest.mark.parametrize(
    "pairs, has_gpu, vocab_size, hparams_set, dropout",
    [
        (20, False, None, "transformer_cpu", 0.3),
        (9_999, True, None, "transformer_cpu", 0.3),
        (10_000, False, None, "transformer_cpu", 0.2),
        (20_000, False, None, "transformer_cpu", 0.2),
        (20_001, False, 8_000, "transformer_cpu", 0.2),
        (100_000, False, 8_000, "transformer_cpu", 0.1),
        (300_000, False, 8_000, "transformer_cpu", 0.1),
        (199_999, True, 8_000, "transformer_cpu", 0.1),
        (200_000, True, None, "transformer_base_v1", None),
    ],
)
def test_more_pairs_need_less_dropout_and_only_a_gpu_a_large_model(pairs, has_gpu, vocab_size, hparams_set, dropout):
    plan = plans.choose(REQUEST, iter(range(pairs)), has_gpu)
    assert (plan.vocab_size, plan.hparams_set) == (vocab_size, hparams_set)
    assert plan.hparams == (f"layer_prepostprocess_dropout={dropout}" if dropout else "")
    registry.hparams(hparams_set).parse(plans.hparams_for(plan, 500))


def test_of_a_huge_corpus_only_a_beginning_is_read():
    pairs = iter(range(10**6))
    plans.choose(REQUEST, pairs, has_gpu=False)
    assert next(pairs) == 200_000


def test_steps_fill_the_time_but_no_more_than_40_passes():
    # 900 seconds of 1,000 are for steps, at 0.5 s each.
    assert plans.steps_for(1_000, seconds_per_step=0.5, passes_per_step=0.001) == 1_800
    assert plans.steps_for(1_000, seconds_per_step=0.5, passes_per_step=0.25) == 160
    assert plans.steps_for(-5, seconds_per_step=0.5, passes_per_step=0.25) == 100


def test_a_short_training_warms_up_for_a_fifth_of_it():
    warmup = registry.hparams(plans.CPU_SET).learning_rate_warmup_steps
    plan = Plan(REQUEST, None, plans.CPU_SET, "layer_prepostprocess_dropout=0.3")
    for steps in (100, 5 * warmup - 5, 5 * warmup, 50_000):
        hparams = registry.hparams(plans.CPU_SET).parse(plans.hparams_for(plan, steps))
        assert hparams.learning_rate_warmup_steps == min(warmup, steps // 5)
    assert plans.hparams_for(Plan(REQUEST, None, "transformer_base_v1", ""), 100) == ""


def test_the_folder_keeps_the_plan(tmp_path):
    assert plans.read_plan(str(tmp_path / "new"), REQUEST) is None
    begun = Plan(REQUEST, None, plans.CPU_SET, "layer_prepostprocess_dropout=0.3")
    for plan in (begun, begun._replace(train_steps=700, vocab_size=8_000)):  # before and after the measurement
        plans.write_plan(str(tmp_path / "new"), plan)
        assert plans.read_plan(str(tmp_path / "new"), REQUEST) == plan
    path = tmp_path / "new/quickstart.json"
    path.write_text(path.read_text().replace("{", '{"note": "by a later version",', 1))
    assert plans.read_plan(str(tmp_path / "new"), REQUEST) == plan
    with pytest.raises(UserError, match=r"quickstart.json: begun with --train_files=a.en,a.de, but you .*=b.en,b.de"):
        plans.read_plan(str(tmp_path / "new"), {**REQUEST, "train_files": ["b.en", "b.de"]})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"request": 1, "hparams_set": "a", "hparams": ""}', "\0"])
def test_a_damaged_plan(tmp_path, text):
    (tmp_path / "quickstart.json").write_text(text)
    with pytest.raises(UserError, match=r"quickstart\.json"):
        plans.read_plan(str(tmp_path), REQUEST)


@pytest.mark.parametrize("split, count", [("dev", 20), ("test", 10)])
def test_the_texts_of_a_split_line_by_line(tmp_path, split, count):
    counts = {"train": 100, "dev": 20, "test": 10}
    pairs = {name: corpus.sentence_pairs(counts[name], seed) for seed, name in enumerate(counts)}
    files = {name: corpus.write_corpus(tmp_path, name, pairs[name]).split(",") for name in counts}
    problem = registry.problem("translate_own")
    problem.configure(**{f"{name}_files": paths for name, paths in files.items()})
    problem.generate_data(str(tmp_path / "d"), str(tmp_path))
    paths = tmp_path / "source", tmp_path / "reference"
    write_texts(problem, str(tmp_path / "d"), split, list(map(str, paths)))
    lines = [path.read_text().splitlines() for path in paths]
    assert len(lines[0]) == count
    assert sorted(zip(*lines, strict=True)) == sorted(pairs[split])
