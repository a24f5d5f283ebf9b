"""The first contact with a GPU, without one: every section at toy size, and what is said where something is missing."""

import json

import pytest

from benchmarks import gpu
from benchmarks.card import cases, pages, talk


@pytest.mark.long  # about twenty processes that import TensorFlow, PyTorch or JAX
def test_every_section_runs_on_a_cpu(tmp_path, capsys):
    out = tmp_path / "gpu"
    assert gpu.main(["--cpu", "--minutes=30", f"--out={out}"]) == 0, capsys.readouterr().err
    page = (out / "README.md").read_text()
    found = json.loads((out / "result.json").read_text())
    steps = "step float32 without XLA", "step bfloat16 XLA"
    for check in ("devices", *steps, "logits", "search", "replicas", "resumed", "export"):
        assert f"| {check} | yes |" in page, page
    measured = {(m["case"].split(",")[0], m["figure"]) for m in found["measurements"] if "ours" in m["sides"]}
    assert {("train toy", "tokens_per_second"), ("beam 4 of toy", "sentences_per_second")} <= measured
    assert ("variants: train toy", "tokens_per_second") in measured


def test_without_a_card_one_line_says_so(capsys, monkeypatch, tmp_path):
    log = tmp_path / "log"
    log.write_text("W0000 1 gpu_device.cc:1] Cannot dlopen some GPU libraries.\n")
    side = Answering({"card": None}, str(log))
    monkeypatch.setattr(gpu.Card, "new_pair", lambda self, **_: {"ours": side, "peer": side})
    assert gpu.main([f"--out={tmp_path / 'gpu'}"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("gpu: TensorFlow sees no GPU: Cannot dlopen some GPU libraries. Expected a GPU")
    assert not (tmp_path / "gpu").exists()


class Answering:
    """A side that always answers the same."""

    def __init__(self, found, log):
        self.found, self.log = found, log

    def ask(self, do, **_):
        """Does nothing."""

    def answer(self, seconds):
        """Returns it."""
        return self.found

    def end(self):
        """Does nothing."""


def test_an_unknown_section_is_refused(capsys):
    assert gpu.main(["--sections=works,speed"]) == 2
    assert "--sections: unknown values: speed. Choose one or more of works, train" in capsys.readouterr().err


def test_a_case_without_room_says_what_fits(tmp_path):
    card = gpu.Card(gpu.parser().parse_args(["--cpu", f"--out={tmp_path / 'gpu'}"]))
    card.page.result.machine["driver"] = "580.1, 24000 MiB, 1980 MHz"  # 25.2 GB
    case = cases.Training("base", 1000, 32)
    assert card.what_fits(case, {"error": "out of memory"}) == ""
    said = card.what_fits(case, {"error": "out of memory", "needs_gb": 41.0, "fixed_gb": 1.0})
    assert said == "; it needs about 41.0 GB, and this GPU has 25.2: 604 rows would fit"


def test_peaks_are_those_of_the_card_and_dtype():
    assert cases.peak_flops("NVIDIA H100 80GB HBM3", "bfloat16") == 989.4e12
    assert cases.peak_flops("NVIDIA H100 PCIe", "float32") == 378e12
    assert cases.peak_flops("NVIDIA A100-SXM4-40GB", "float32") == 156e12
    assert cases.peak_flops("NVIDIA T1000", "float32") is None


@pytest.mark.parametrize("section", ["train", "big", "gpt2", "translate", "generate", "more"])
def test_cases_travel_as_json(section):
    for wave in cases.waves(section):
        assert [cases.from_json(json.loads(json.dumps(cases.to_json(case)))) for case in wave] == wave


@pytest.mark.slow
def test_a_page_has_what_was_found_when_it_is_cut_off(tmp_path):
    page = pages.Page(str(tmp_path / "gpu"))
    page.describe("NVIDIA H100", {"peer": {"torch": "2.11"}}, "580, 81559 MiB")
    page.check("step float32 XLA", {"ok": True, "says": "loss 11.0"})
    case, turn = cases.Training("base", 782, 32), {"seconds": 0.5, "tokens": 500_480, "waiting": 0.01, "peak_gb": 12.0}
    said = {"ours": {"ready_seconds": 80.0, "flops": 9.5e12}, "peer": {"ready_seconds": 50.0}}
    other = {"seconds": 1.0, "tokens": 500_480, "peak_gb": 11.0}
    page.add_case(case, {"ours": [turn] * 3, "peer": [other] * 3}, said, 989.4e12)
    page.add_profile("kernels", case.title, {"error": "RuntimeError: no profiler"})
    page.leave_out("jax", "ModuleNotFoundError: No module named 'jax'")
    page.write(60.0)
    text = (tmp_path / "gpu" / "README.md").read_text()
    assert "NVIDIA H100 (driver, memory, clock: 580, 81559 MiB)" in text
    assert "| step float32 XLA | yes | loss 11.0 |" in text
    assert "| tokens per second (more is better) | 1,000,960 | 500,480 | **2** |" in text
    assert "| share of the card's peak (more is better) | 0.384 | 0.192 | **2** |" in text  # 20 steps in half a second
    assert "jax.jit was not measured: ModuleNotFoundError" in text
    assert (tmp_path / "gpu" / "plot.png").exists()


def test_a_side_answers_an_error_and_goes_on(tmp_path):
    module = tmp_path / "side.py"
    module.write_text(
        "import sys; sys.path.insert(0, '.')\n"
        "from benchmarks.card.talk import answer\n"
        "print('noise')\n"
        "answer({'half': lambda of: {'is': of / 2}, 'end': lambda: sys.exit(3)})\n"
    )
    side = talk.Side("side", str(tmp_path / "log"), {"PYTHONPATH": f"{tmp_path}"})
    try:
        side.ask("half", of="x")
        side.ask("half", of=3)
        assert side.answer(60)["error"].startswith("TypeError: unsupported operand")
        assert side.answer(60) == {"is": 1.5}
        side.ask("end")
        assert side.answer(60)["error"].startswith("its process ended")
    finally:
        side.end()


def test_a_side_that_does_not_answer_is_ended(tmp_path):
    (tmp_path / "sleeper.py").write_text("import time; time.sleep(600)")
    side = talk.Side("sleeper", str(tmp_path / "log"), {"PYTHONPATH": f"{tmp_path}"})
    side.ask("anything")
    assert side.answer(0.5) == {"error": "no answer within 0 s"}
    side.end()
