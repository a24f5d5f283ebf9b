"""lm-evaluation-harness as a client of t2t-server: its log-likelihoods are those of Generator.score."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import t2t_lite
from t2t_lite.export import export_saved_model
from tests.decoding.runs import make_language_model_run
from tests.extras.serving.running_server import RunningServer

pytest.importorskip("lm_eval")

ROWS = [
    ("the red", " house is old"), ("the green ", "tree was new"), ("Grü", "n und \u20ac neu"), ("", "the red house"),
    ("ein", " "), ("der rote Haus ist", " alt und ein grün Baum"),
]  # fmt: skip
_TASK = """\
task: t2t_{kind}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
test_split: test
output_type: {kind}
doc_to_text: "{text}"
doc_to_target: "{target}"
target_delimiter: ""
metric_list: [{{metric: {metric}}}]
{more}
"""
_TASKS = {
    "loglikelihood": ("{{context}}", "{{target}}", "perplexity", ""),
    "loglikelihood_rolling": ("", "{{context}}{{target}}", "bits_per_byte", ""),
    "generate_until": ("{{context}}", "", "exact_match", "generation_kwargs: {until: [zu], max_gen_toks: 8}"),
}


@pytest.fixture(scope="module")
def export_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    run = make_language_model_run(folder, initializer_gain=3.0, max_position=64)
    export_saved_model(t2t_lite.load(str(run)), str(folder / "export"), beam_size=1, extra_length=20)
    return folder / "export"


@pytest.fixture(scope="module")
def answers(export_dir, tmp_path_factory):
    """{kind: [(arguments, answers)]} of the requests that lm_eval has sent."""
    folder = tmp_path_factory.mktemp("tasks")
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps({"context": text, "target": target}) + "\n" for text, target in ROWS))
    for kind, (text, target, metric, more) in _TASKS.items():
        task = _TASK.format(kind=kind, rows=rows, text=text, target=target, metric=metric, more=more)
        (folder / f"{kind}.yaml").write_text(task)
    flags = [f"--export_dir={export_dir}", "--servable_name=plays", "--max_streams=2"]
    with RunningServer(folder, "t2t-server", *flags) as server:
        address = f"http://{server.address}/v1/completions"
        command = [
            pathlib.Path(sys.executable).with_name("lm_eval"), "run", "--model", "local-completions",
            "--model_args", f"model=plays,base_url={address},max_length=63", "--batch_size", "4",
            "--tasks", ",".join(f"t2t_{kind}" for kind in _TASKS), "--include_path", folder, "--log_samples",
            "--output_path", folder / "out",
        ]  # fmt: skip
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    found = {}
    for kind in _TASKS:
        (path,) = (folder / "out").rglob(f"samples_t2t_{kind}_2*.jsonl")
        samples = [json.loads(line) for line in path.read_text().splitlines()]
        found[kind] = [(next(iter(sample["arguments"].values())), sample["resps"][0][0]) for sample in samples]
    return found


def test_log_likelihoods_are_those_of_generator(export_dir, answers):
    generator = t2t_lite.Generator.load(str(export_dir))
    assert len(answers["loglikelihood"]) == len(ROWS)
    for arguments, (value, is_greedy) in answers["loglikelihood"]:
        context, target = arguments.values()
        spaces = context[len(context.rstrip()) :]  # the harness moves them to the target
        before = generator.ids_of(context.rstrip())
        ids = before + generator.ids_of(context.rstrip() + spaces + target)[len(before) :]
        expected = generator.score([ids])[0].token_log_probs[len(before) :]
        assert float(value) == pytest.approx(sum(expected), abs=1e-4)
        (greedy,) = generator.generate([before], beam_size=1, max_new_tokens=len(expected))
        assert (is_greedy in (True, "True")) == (greedy.ids == ids[len(before) :])
    for arguments, value in answers["loglikelihood_rolling"]:
        (text,) = arguments.values()
        value = value[0] if isinstance(value, list) else value
        assert float(value) == pytest.approx(generator.score([text])[0].log_prob, abs=1e-4)


def test_continuations_are_those_of_generator(export_dir, answers):
    generator = t2t_lite.Generator.load(str(export_dir))
    for arguments, text in answers["generate_until"]:
        prompt = next(iter(arguments.values()))
        (expected,) = generator.generate([prompt], beam_size=1, max_new_tokens=8, stop=["zu", "<|endoftext|>"])
        assert text == expected.text
