"""The peers of `benchmarks/gpu.py`, on the CPU: their models are of our sizes, and their process answers."""

import json
import subprocess
import sys

import pytest

from benchmarks.card import cases, peer_models, peers
from benchmarks.harness.turns import ROOT
from t2t_lite import registry

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
CPU = torch.device("cpu")
TOY_GPT2 = cases.Training("toy", 4, 8, "float32", 2, 100, language_model=True)


def answers(*requests, before=""):
    """What the process answers: one line each, and nothing else on its standard output."""
    done = subprocess.run(
        [sys.executable, "-c", f"{before}\nfrom benchmarks.card import peers\npeers.main()"], cwd=ROOT, text=True,
        input="".join(json.dumps(request) + "\n" for request in requests), capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(requests), done.stdout
    return found


def toy_cases():
    train, translate, generate = (cases.waves(work, is_toy=True)[0][0] for work in ("train", "translate", "generate"))
    half = cases.Training("toy", 4, 8, "bfloat16", 2, 100)
    return [train, half, TOY_GPT2, translate, generate]


def test_every_toy_case_warms_and_takes_a_turn():
    toys = toy_cases()
    pairs = [({"do": "warm", "case": cases.to_json(case)}, {"do": "turn"}) for case in toys]
    requests = [request for pair in pairs for request in pair]
    hello, *found, dropped = answers({"do": "hello"}, *requests, {"do": "drop"})
    assert hello["side"] == "torch" and hello["card"] is None and hello["torch"] == torch.__version__
    assert dropped == {}
    for case, warm, turn in zip(toys, found[::2], found[1::2], strict=True):
        assert warm["ready_seconds"] > 0 and turn["seconds"] > 0 and turn["peak_gb"] == 0, (warm, turn)
        if case.work == "train":
            assert 3 < warm["loss"] < 8 and turn["tokens"] == 64, (warm, turn)
        else:
            assert turn["sentences"] == 2 and turn.get("tokens") == (10 if case.work == "generate" else None)


def test_what_cannot_be_done_is_said_and_the_process_goes_on():
    hello, turn, dropped = answers(
        {"do": "hello"}, {"do": "turn"}, {"do": "drop"}, before="import sys\nsys.modules['torch'] = None"
    )
    assert hello["error"] == "ModuleNotFoundError: import of torch halted; None in sys.modules"
    assert "error" in turn and dropped == {}


def parameters(model):
    return sum(weight.numel() for weight in model.parameters() if weight.requires_grad)


@pytest.mark.parametrize(
    "kind, hparams_set, model, case, overrides",
    [
        ("translation_model", "transformer_base_v1", "transformer", cases.Training("base", 4, 8), ""),
        ("gpt2", "gpt2_small", "transformer_lm", cases.Generating("gpt2_small", 4, "float32"), ""),
        # Marian's attention has biases, always.
        ("marian", "transformer_base_v1", "transformer", cases.Translating("base", 4, "float32"), "attention_bias=1"),
    ],
    ids=["base", "gpt2", "marian"],
)
def test_models_have_our_sizes(kind, hparams_set, model, case, overrides):
    hparams = registry.hparams(hparams_set).parse(overrides)
    ours = registry.model(model).from_hparams(hparams, case.vocab_size)
    ours.build()
    assert parameters(getattr(peer_models, kind)(case)) == ours.count_params()


@pytest.mark.parametrize(
    "case", [cases.Training("toy", 4, 8, "bfloat16", 2, 100), TOY_GPT2], ids=["translation", "gpt2"]
)
def test_training_is_one_graph_with_dropout_and_fused_attention(case, monkeypatch):
    """One, for all batches, without a break; and no attention of the decoder has a mask besides being causal."""
    attention, calls, graphs = torch.nn.functional.scaled_dot_product_attention, [], []

    def spied(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options):
        calls.append((attn_mask is None, is_causal, dropout_p))
        return attention(query, key, value, attn_mask, dropout_p, is_causal, **options)

    work = peers.TrainingWork(case, CPU, compiles=False)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spied)
    losses = {work.loss(*work.batches[0]).item() for _ in range(2)}
    assert len(losses) == 2  # the masks of dropout differ
    masked, causal = (False, False, 0.0), (True, True, 0.1 if case.language_model else 0.0)
    assert calls == ([causal] if case.language_model else [masked, causal, masked]) * 2
    monkeypatch.undo()

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    work.forward = torch.compile(work.model, dynamic=False, backend=backend, fullgraph=True)
    work.warm()
    work.run()
    assert len(graphs) == 1


def test_what_cannot_be_compiled_is_trained_all_the_same():
    def broken(graph, _):
        raise ValueError("no compiler of C")

    work = peers.TrainingWork(cases.Training("toy", 4, 8, "float32", 2, 100), CPU, compiles=True)
    work.forward = torch.compile(work.model, backend=broken)
    said = work.warm()
    assert said["loss"] > 0 and "eager, torch.compile failed" in said["peer"] and "no compiler of C" in said["peer"]
