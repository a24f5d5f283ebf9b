"""Tests the package on an NVIDIA GPU: whether it works, how fast it is, and where the time goes.

python -m benchmarks.gpu                              # as much as fits into six minutes; the most useful sections first
python -m benchmarks.gpu --minutes=12 --sections=works,train
python -m benchmarks.gpu --cpu                        # runs every section at toy size on the CPU

The sections are:

* `works`: checks training steps in every dtype with and without XLA, logits against the CPU's, a resumed run, two
  replicas, searches and an export.
* `train`, `big`, `gpt2`: tokens per second and the share of the GPU's peak that is reached, compared with PyTorch's
  nn.Transformer and Hugging Face's GPT-2 under torch.compile. For the first case, kernels are listed by time.
* `translate`, `generate`: searches, compared with Hugging Face's.
* `attention`: cuDNN's fused attention.
* `loss_blocks`: the loss over a large vocabulary, computed in blocks of rows.
* `variants`: the first training case with deterministic operations, with XLA's command buffers, with matrix products
  compiled by Triton, and without XLA.
* `jax`: the first training case with the same layers under jax.jit.
* `more`: less useful cases, such as float32 and small batches.

If something is missing (PyTorch, JAX or memory), the section reports it, and the other sections continue.

All sides have random weights and the same shapes. The sides run in separate processes, warm up in parallel, and take
turns on the GPU one at a time. A training batch has rows of 32 ids per side without padding (1,024 ids for a language
model), read from records by the trainer's pipeline; dropout is 0.1, and the optimizer is Adam. Operations are counted
as by `t2t-trainer --describe`. Outputs of searches always reach the length limit. The result is written after each
section.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.card import cases, pages
from benchmarks.card.talk import Side
from benchmarks.harness import record, report
from benchmarks.harness.command import chosen
from t2t_lite.errors import UserError

SECTIONS = (
    "works",
    "train",
    "translate",
    "big",
    "generate",
    "gpt2",
    "attention",
    "loss_blocks",
    "variants",
    "jax",
    "more",
)
_WARM, _TURN = 240, 120  # time limits of a side, in seconds
_ROUNDS = 3
_DTYPES = "float32", "bfloat16", "float16"


class Card:
    """Runs the requested sections within the time limit.

    Args:
        flags: the command line's flags.
    """

    def __init__(self, flags):
        self.flags, self.started = flags, time.monotonic()
        self.page = pages.Page(flags.out)
        self.folder = tempfile.mkdtemp(prefix="t2t_card_")
        self.number = 0  # number of processes started so far
        self.warming = None  # (wave, pairs of processes) that warm up early, or None
        self.has_peer = True

    @property
    def left(self):
        """The remaining seconds."""
        return 60 * self.flags.minutes - (time.monotonic() - self.started)

    def say(self, line):
        """Prints a line with the time since the start."""
        print(f"[{time.monotonic() - self.started:5.0f} s] {line}", file=sys.stderr, flush=True)

    def side(self, name, module="benchmarks.card.ours", **environment):
        """Starts the process of a side."""
        self.number += 1
        environment = {"TF_CPP_MIN_LOG_LEVEL": "2", "TF_FORCE_GPU_ALLOW_GROWTH": "true", **environment}
        environment |= {"CUDA_VISIBLE_DEVICES": "-1"} if self.flags.cpu else {}
        return Side(module, os.path.join(self.folder, f"{name}{self.number}.log"), environment)

    def run(self):
        """Runs the sections; returns the exit status: 2 without a GPU, 1 if a check failed."""
        if not self.find_card():
            return 2
        try:
            if "train" in self.flags.sections:
                self.warming = self.warmed(cases.waves("train", self.flags.cpu)[0])  # they warm up while the checks run
            for name in self.flags.sections:
                self.say(name)
                if self.left < 20:
                    self.page.leave_out(name, f"the {self.flags.minutes:g} minutes were over")
                elif self.page.nothing_works:
                    self.page.leave_out(name, "no training step works")
                elif name in ("works", "attention", "loss_blocks", "variants", "jax"):
                    getattr(self, name)()
                else:
                    self.measure(name)
                self.page.write(time.monotonic() - self.started)
        finally:
            if self.warming:
                self.end(self.warming[1])
            self.page.write(time.monotonic() - self.started)
        print(self.flags.out)
        return 0 if self.page.is_right else 1

    def find_card(self):
        """Asks TensorFlow and PyTorch for devices; returns whether there is a GPU or --cpu is set."""
        pair = self.new_pair(TF_CPP_MIN_LOG_LEVEL="0")  # its log says why a GPU cannot be used
        for side in pair.values():
            side.ask("hello")
        hellos = {name: side.answer(_WARM) for name, side in pair.items()}
        self.end([pair])
        if "error" in hellos["ours"]:
            print(f"gpu: t2t_lite does not start: {hellos['ours']['error']}", file=sys.stderr)
            return False
        if hellos["ours"]["card"] is None and not self.flags.cpu:
            reason = pages.first_match(pair["ours"].log, "dlopen|cuInit|cuda drivers") or "no reason was logged"
            print(
                f"gpu: TensorFlow sees no GPU: {reason.rstrip('.')}. Expected a GPU that nvidia-smi lists, and "
                "pip install '.[cuda]'; --cpu tries every section on the CPU.", file=sys.stderr,
            )  # fmt: skip
            return False
        if "error" in hellos["peer"]:
            self.page.leave_out("peers", hellos["peer"]["error"])
            self.has_peer = False
        self.card = hellos["ours"]["card"] or "CPU"
        self.page.describe(self.card, hellos, driver())
        self.say(json.dumps(hellos))
        return True

    def new_pair(self, **environment):
        """Starts one process for each side."""
        modules = {"ours": "benchmarks.card.ours"} | ({"peer": "benchmarks.card.peers"} if self.has_peer else {})
        return {name: self.side(name, module, **environment) for name, module in modules.items()}

    def warmed(self, wave):
        """Starts processes that warm up the cases of a wave; returns (wave, pairs of processes)."""
        pairs = [self.new_pair() for _ in wave]
        for case, pair in zip(wave, pairs, strict=True):
            for side in pair.values():
                side.ask("warm", case=cases.to_json(case))
        return wave, pairs

    def end(self, pairs):
        """Ends processes, which frees the GPU's memory."""
        for pair in pairs:
            for side in pair.values():
                side.end()

    def patience(self, seconds):
        """Returns how long to wait for an answer, in seconds."""
        return min(seconds, max(self.left, 20))

    # Sections.

    def works(self):
        """Runs the checks in separate processes, because some checks set up devices."""
        toy = {"is_toy": self.flags.cpu}
        steps = [[("step", {"dtype": d, "xla_compile": x}) for x in kinds] for d, kinds in self.steps.items()]
        lanes = [*steps, [("replicas", {})], [("run", {})]]
        lanes[0] = [("devices", {}), *lanes[0], ("logits", {}), ("search", {})]
        sides = [self.side(f"works{at}", "benchmarks.card.works") for at in range(len(lanes))]
        for side, lane in zip(sides, lanes, strict=True):
            for name, arguments in lane:
                side.ask(name, **arguments, **toy)
        for side, lane in zip(sides, lanes, strict=True):
            for name, arguments in lane:
                answer = side.answer(self.patience(_WARM))
                for check, outcome in ({name: answer} if name != "run" else pages.two_checks(answer)).items():
                    title = " ".join([check, *(str(v) for v in arguments.values())])
                    self.page.check(title.replace("True", "XLA").replace("False", "without XLA"), outcome)
                    self.say(f"{title}: {outcome.get('says') or outcome.get('error')}")
            side.end()

    @property
    def steps(self):
        """The training steps to check, {dtype: values of xla_compile}."""
        return {"float32": [False], "bfloat16": [True]} if self.flags.cpu else dict.fromkeys(_DTYPES, (False, True))

    def measure(self, section):
        """Measures all cases of a section; both sides take turns."""
        for wave in cases.waves(section, self.flags.cpu):
            if self.warming and self.warming[0] == wave:
                (_, pairs), self.warming = self.warming, None
            elif self.left < 45:
                for case in wave:
                    self.page.leave_out(case.title, f"the {self.flags.minutes:g} minutes were over")
                continue
            else:
                _, pairs = self.warmed(wave)
            warm_answers = [{n: side.answer(self.patience(_WARM)) for n, side in pair.items()} for pair in pairs]
            for at, case in enumerate(wave):
                self.take_turns(case, pairs[at], warm_answers[at])
                if case == cases.waves("train", self.flags.cpu)[0][0] and "error" not in warm_answers[at]["ours"]:
                    self.look_inside(pairs[at]["ours"], case)
            self.end(pairs)
            self.page.write(time.monotonic() - self.started)

    def take_turns(self, case, pair, warm_answers, prefix=""):
        """Measures one case; `warm_answers` has each side's answer after warming up."""
        self.say(f"{prefix}{case.title}: {json.dumps(warm_answers)}")
        for name, answer in warm_answers.items():
            if "error" in answer:
                self.page.leave_out(f"{prefix}{case.title}, {name}", answer["error"] + self.what_fits(case, answer))
        turns = {name: [] for name, answer in warm_answers.items() if "error" not in answer}
        for _ in range(_ROUNDS):
            for name in [*turns]:
                pair[name].ask("turn")
                answer = pair[name].answer(_TURN)
                if "error" in answer:
                    self.page.leave_out(f"{prefix}{case.title}, {name}", answer["error"])
                    del turns[name]
                else:
                    turns[name].append(answer)
        if turns:
            self.page.add_case(case, turns, warm_answers, cases.peak_flops(self.card, case.dtype), prefix)
            medians = {
                name: statistics.median(answer["seconds"] for answer in answers) for name, answers in turns.items()
            }
            self.say(f"{case.title}: seconds per turn {json.dumps(medians)}")

    def what_fits(self, case, answer):
        """Returns a note on which size would fit if a side reported how much memory it needs, otherwise ""."""
        if "needs_gb" not in answer:
            return ""
        memory = re.search(r"(\d+) MiB", self.page.result.machine["driver"])
        has = int(memory[1]) * 2**20 / 1e9 if memory else 0.0
        rows = int(case.rows * max(0.0, has - answer["fixed_gb"]) / max(answer["needs_gb"] - answer["fixed_gb"], 1e-9))
        fits = f"{rows:,} rows would fit" if 0 < rows < case.rows else "it may fit if nothing else uses the GPU"
        return f"; it needs about {answer['needs_gb']:.1f} GB, and this GPU has {has:.1f}: {fits}"

    def look_inside(self, side, case):
        """Profiles a warm case: its kernels, and the devices of its operations."""
        for what in ("placement", "kernels"):
            side.ask(what)
            profile = side.answer(_TURN)
            self.page.add_profile(what, case.title, profile)
            self.say(f"{what}: {json.dumps(profile)[:1500]}")

    def attention(self):
        """Compares cuDNN's fused attention with plain attention: results, time and memory."""
        self.compare("attention", "benchmarks.card.fused_attention")

    def loss_blocks(self):
        """Compares two ways to compute the loss over a large vocabulary: in blocks of rows, and with all logits."""
        self.compare("loss_blocks", "benchmarks.card.loss_blocks")

    def compare(self, name, module):
        """Runs a module that compares two ways of computing the same result; records its answer as a check."""
        side = self.side(name, module)
        side.ask("compare")
        outcome = side.answer(self.patience(_WARM))
        side.end()
        self.page.check(name, outcome)
        self.say(f"{name}: {outcome.get('says') or outcome.get('error')}")

    def variants(self):
        """Runs the first training case in every variant."""
        case, flags = cases.waves("train", self.flags.cpu)[0][0], os.environ.get("XLA_FLAGS", "")
        sides = {
            "ours": self.side("ours"),
            "deterministic": self.side("deterministic", T2T_DETERMINISTIC="1"),
            "command_buffers": self.side("buffers", XLA_FLAGS=f"{flags} --xla_gpu_enable_command_buffer=FUSION,CUBLAS"),
            "triton": self.side("triton", XLA_FLAGS=f"{flags} --xla_gpu_enable_triton_gemm=true"),
            "uncompiled": self.side("uncompiled"),
        }
        for name, side in sides.items():
            side.ask("hello")
            side.ask("warm", case=cases.to_json(case), xla_compile=name != "uncompiled")
        warm_answers = {n: side.answer(_WARM) and side.answer(self.patience(_WARM)) for n, side in sides.items()}
        self.take_turns(case, sides, warm_answers, "variants: ")
        if "error" not in warm_answers["deterministic"]:
            sides["deterministic"].ask("kernels")
            self.page.add_profile("kernels", f"{case.title}, deterministic", sides["deterministic"].answer(_TURN))
        self.end([sides])

    def jax(self):
        """Runs the first training case with the same layers under jax.jit."""
        case, where = cases.waves("train", self.flags.cpu)[0][0], "cpu" if self.flags.cpu else "cuda"
        side = self.side("jax", "benchmarks.card.jax_step", KERAS_BACKEND="jax", JAX_PLATFORMS=where)
        side.ask("hello")
        side.ask("warm", case=cases.to_json(case))
        hello, warm_answer = side.answer(_WARM), side.answer(self.patience(_WARM))
        if "error" in hello:
            self.page.leave_out("jax", hello["error"])
        else:
            self.page.result.versions["jax"] = hello.get("jax", "")
            self.take_turns(case, {"jax": side}, {"jax": warm_answer}, "jax: ")
        side.end()


def driver():
    """Returns the GPU's driver and memory as reported by nvidia-smi, or ""."""
    words = ["nvidia-smi", "--query-gpu=driver_version,memory.total,clocks.max.sm", "--format=csv,noheader"]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def parser():
    """Returns the ArgumentParser."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--minutes", type=float, default=6.0, help="no case is started after this time")
    flags.add_argument("--sections", default=",".join(SECTIONS), help="sections to run, in this order")
    flags.add_argument("--cpu", action="store_true", help="run all sections with toy sizes on the CPU")
    flags.add_argument("--out", help="result folder; default: benchmarks/results/gpu_<date>, with --cpu bench/gpu")
    return flags


def main(argv=None):
    """Runs the benchmark; returns the exit status."""
    flags = parser().parse_args(argv)
    try:
        flags.sections = chosen("--sections", flags.sections, SECTIONS)
    except UserError as error:
        print(f"gpu: {error}", file=sys.stderr)
        return 2
    flags.out = flags.out or (str(record.REPOSITORY / "bench" / "gpu") if flags.cpu else report.new_folder("gpu"))
    return Card(flags).run()


if __name__ == "__main__":
    sys.exit(main())
