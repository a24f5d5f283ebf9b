"""Runs PyTorch and Hugging Face on a GPU; a process that answers requests of `benchmarks/gpu.py`.

python -m benchmarks.card.peers

PyTorch's nn.Transformer (the same model as ours) and Hugging Face's GPT-2 are trained with torch.autocast,
torch.compile and a fused optimizer. Beam search uses Hugging Face's Marian, and greedy search uses its GPT-2. Without a
GPU, everything runs on the CPU without compilation. With T2T_PEER_COMPILE=0, nothing is compiled on a GPU, either.
"""

import contextlib
import gc
import importlib.metadata
import os
import sys
import time

from benchmarks.card.cases import from_json, random_ids
from benchmarks.card.peer_models import BATCHES, UNMASKED, gpt2, marian, translation_model
from benchmarks.card.talk import answer


class TrainingWork:
    """Trains a model; `run` takes steps on the batches in turn.

    Args:
        case: cases.Training.
        device: torch.device.
        compiles: bool.
    """

    def __init__(self, case, device, compiles):
        import torch

        self.case, self.device, self.compiles = case, device, compiles
        if case.language_model:
            self.name = "Hugging Face GPT-2"
            self.model = gpt2(case, UNMASKED)
            options = {"lr": 2.5e-4, "weight_decay": 0.01}
        else:
            self.name = "PyTorch nn.Transformer"
            self.model = translation_model(case)
            options = {"lr": 1e-4, "betas": (0.9, 0.98), "eps": 1e-9}
        self.model.to(device).train()
        new = torch.optim.AdamW if case.language_model else torch.optim.Adam
        self.optimizer = new(self.model.parameters(), fused=True, **options)
        self.forward = torch.compile(self.model, dynamic=False) if compiles else self.model
        self.scaler = torch.amp.GradScaler(device.type, enabled=case.dtype == "float16")
        ids = torch.from_numpy(random_ids(case, BATCHES, case.rows * 2)).to(device)
        self.batches = [(both[: case.rows].contiguous(), both[case.rows :].contiguous()) for both in ids]
        self.steps = 0

    def loss(self, inputs, targets):
        """Returns the loss of a batch, a tensor on the device."""
        import torch

        with self.precision(torch):
            if self.case.language_model:
                return self.forward(input_ids=targets, labels=targets, use_cache=False).loss
            return self.forward(inputs, targets)

    def step(self):
        """Takes one training step; returns the loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(*self.batches[self.steps % BATCHES])
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.steps += 1
        return loss.detach()

    def precision(self, torch):
        """Returns the context manager that sets the precision of a forward pass."""
        if self.case.dtype == "float32":
            return contextlib.nullcontext()  # products are TF32: see `Peer.warm`
        return torch.autocast(self.device.type, dtype=getattr(torch, self.case.dtype))

    def warm(self):
        """Compiles the model, and takes a step on each batch; returns figures."""
        import torch

        how, why = "torch.compile" if self.compiles else "eager", ""
        try:
            self.step()
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            if not self.compiles:
                raise
            why = " ".join(f"{type(error).__name__}: {error}".split()[:40])
        if why:  # not in the `except` block, where the traceback would keep tensors alive
            print(f"not compiled: {why}", file=sys.stderr)
            torch._dynamo.reset()
            self.forward, how = self.model, f"eager, torch.compile failed: {why[:200]}"
        for _ in range(BATCHES):
            loss = self.step()
        return {"loss": loss.item(), "peer": f"{self.name}, {how}"}

    def run(self):
        """Takes the steps of one turn; returns figures."""
        for _ in range(self.case.steps):
            self.step()
        return {"tokens": self.case.tokens * self.case.steps}


class SearchWork:
    """Translates a batch of sources, or continues a batch of prompts, with a model that has random weights.

    Args:
        case: cases.Translating or cases.Generating.
        device: torch.device.
    """

    def __init__(self, case, device):
        import torch
        from transformers import GenerationConfig

        self.case, self.translates = case, case.work == "translate"
        self.model = (marian if self.translates else gpt2)(case).to(device=device, dtype=getattr(torch, case.dtype))
        self.model.eval()
        self.settings = GenerationConfig(
            max_new_tokens=case.new, num_beams=case.beam_size if self.translates else 1, do_sample=False,
            use_cache=True, pad_token_id=0, **({"decoder_start_token_id": 0} if self.translates else {}),
        )  # fmt: skip
        self.ids = torch.from_numpy(random_ids(case, case.batch)).to(device)
        self.mask = torch.ones_like(self.ids)

    def run(self):
        """Searches once; returns the numbers of sentences and tokens."""
        import torch

        with torch.inference_mode():
            outputs = self.model.generate(input_ids=self.ids, attention_mask=self.mask, generation_config=self.settings)
        expected = self.case.batch, self.case.new + (1 if self.translates else self.case.length)
        if tuple(outputs.shape) != expected:
            raise RuntimeError(f"outputs have the shape {tuple(outputs.shape)}, expected {expected}")
        figures = {"sentences": self.case.batch}
        return figures if self.translates else {**figures, "tokens": self.case.batch * self.case.new}

    def warm(self):
        """Searches twice; returns figures."""
        for _ in range(2):
            self.run()
        return {"peer": f"Hugging Face {'Marian' if self.translates else 'GPT-2'}, generate"}


class Peer:
    """Handles the requests to this process, with one case at a time."""

    work = None

    def hello(self):
        """Returns the versions and the GPU's name. Raises `ImportError` without PyTorch."""
        import torch

        try:
            transformers = importlib.metadata.version("transformers")
        except importlib.metadata.PackageNotFoundError:
            transformers = None
        card = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
        versions = {"torch": torch.__version__, "transformers": transformers, "cuda": torch.version.cuda}
        return {"side": "torch", "card": card, **versions}

    def warm(self, case):
        """Creates the model of a case, given as JSON, and runs it until it is warm."""
        import torch

        self.drop()
        case, is_card = from_json(case), torch.cuda.is_available()
        device = torch.device("cuda" if is_card else "cpu")
        torch.manual_seed(1)
        torch.set_float32_matmul_precision("high")
        started = time.perf_counter()
        if case.work == "train":
            work = TrainingWork(case, device, is_card and os.environ.get("T2T_PEER_COMPILE", "1") != "0")
        else:
            work = SearchWork(case, device)
        figures = work.warm()
        _synchronize()
        self.work, seconds = work, time.perf_counter() - started
        if is_card:
            torch.cuda.reset_peak_memory_stats()  # compilation may have needed more memory
        return {"ready_seconds": round(seconds, 2), **figures}

    def turn(self):
        """Runs one turn of the case; returns figures."""
        import torch

        if self.work is None:
            raise RuntimeError("no case is warm")
        _synchronize()
        started = time.perf_counter()
        figures = self.work.run()
        _synchronize()
        seconds = time.perf_counter() - started
        peak = torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0.0
        return {"seconds": seconds, **figures, "peak_gb": peak}

    def drop(self):
        """Frees the memory of the current case."""
        self.work = None
        if torch := sys.modules.get("torch"):
            torch._dynamo.reset()
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        return {}


def _synchronize():
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main():
    """Answers requests until standard input ends."""
    peer = Peer()
    answer({"hello": peer.hello, "warm": peer.warm, "turn": peer.turn, "drop": peer.drop})


if __name__ == "__main__":
    main()
