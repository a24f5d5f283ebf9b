"""Runs t2t_lite on a GPU; a process that answers requests of `benchmarks/gpu.py`.

python -m benchmarks.card.ours

Training reads records through the trainer's own pipeline and feed, and XLA compiles the step. Searches are also
compiled. Without a GPU, everything runs on the CPU.
"""

import gc
import os
import tempfile
import time

from benchmarks.card import profile
from benchmarks.card.cases import DROPOUT, SIZES, SMOOTHING, from_json, random_ids
from benchmarks.card.talk import answer
from benchmarks.harness import steps

SETS = {"base": "transformer_base_v1", "big": "transformer_big_v1", "gpt2_small": "gpt2_small"}
_RECORDS = 16  # number of batches in the records


def card():
    """Returns TensorFlow's name of the GPU, or None."""
    import tensorflow as tf

    return next((device.name for device in tf.config.list_logical_devices("GPU")), None)


def peak_gb():
    """Returns TensorFlow's peak GPU memory, in GB."""
    import tensorflow as tf

    name = card()
    return tf.config.experimental.get_memory_info(name.removeprefix("/device:"))["peak"] / 1e9 if name else 0.0


def hparams_of(case, **settings):
    """Returns the HParams of a case: its hparams set, changed to the sizes and the dropout that all sides share."""
    from t2t_lite import registry

    policy = case.dtype if case.dtype == "float32" else f"mixed_{case.dtype}"
    overrides = {**SIZES[case.model], "dtype_policy": policy, "layer_prepostprocess_dropout": DROPOUT, "random_seed": 1}
    overrides |= {"clip_grad_norm": 0.0} if getattr(case, "language_model", False) else {"label_smoothing": SMOOTHING}
    overrides |= {"max_length": case.length, "batch_size": case.tokens, **settings}
    return registry.hparams(SETS.get(case.model, SETS["base"])).override_from_dict(overrides)


def new_step(case, hparams, xla_compile=True, replicas=None):
    """Returns a TrainStep of a new model on the GPU, or on the CPU if there is no GPU."""
    from t2t_lite.runs.run_config import build_model
    from t2t_lite.training.distribution import choose_replicas, set_xla_flags

    if xla_compile:
        set_xla_flags()
    config = {"model": "transformer_lm" if case.language_model else "transformer", "hparams": hparams.values()}
    config |= {"vocab_size": case.vocab_size, "target_vocab_size": None}
    options = {"xla_compile": xla_compile, "features": features_of(case)}
    options["avoids_scatter"] = xla_compile and bool(os.environ.get("T2T_DETERMINISTIC"))
    return steps.new_step(lambda: build_model(config), hparams, replicas or choose_replicas(1), **options)


def features_of(case):
    """Returns {feature: rank} for the batches of a case."""
    return {"targets": 2} if case.language_model else {"inputs": 2, "targets": 2}


def write_records(path, case):
    """Writes records with rows of random ids, without padding."""
    import tensorflow as tf

    from t2t_lite.data.record_format import serialize

    ids = random_ids(case, _RECORDS * case.rows, len(features_of(case)))
    with tf.io.TFRecordWriter(path) as file:
        for row in ids:
            file.write(serialize(dict(zip(features_of(case), row.tolist(), strict=True))))


class TrainingWork:
    """Trains a model on records.

    Args:
        case: cases.Training.
        xla_compile: bool.
    """

    def __init__(self, case, xla_compile=True):
        from t2t_lite.data import batching
        from t2t_lite.data.problem import Problem
        from t2t_lite.extras.describe.cost import forward_flops
        from t2t_lite.training.training_data import Feed

        class Rows(Problem):
            """The problem of the records that `write_records` writes."""

            features = record_features = features_of(case)

        hparams = hparams_of(case)
        self.case, self.launching = case, 0.0
        self.step = new_step(case, hparams, xla_compile)
        self._folder = tempfile.TemporaryDirectory()
        path = os.path.join(self._folder.name, "rows-train-00000-of-00001")
        write_records(path, case)
        stream = iter(batching.training_batches(Rows(), hparams, [path]))
        self.feed = Feed(stream, 0, self.step, [path], tuple(features_of(case)))
        self.flops = forward_flops(self.step.model, dict.fromkeys(features_of(case), case.length)).training(case.tokens)

    def warm(self):
        """Takes the first steps, which include compiling with XLA; returns figures."""
        started = time.perf_counter()
        self.take(1)
        seconds = time.perf_counter() - started
        return {"compile_seconds": round(seconds, 2), "loss": self.take(3), "flops": self.flops}

    def needs(self):
        """Returns --describe's estimate of a step's memory, and the part that does not grow with the number of rows."""
        from t2t_lite.extras.describe.cost import training_memory

        lengths = dict.fromkeys(features_of(self.case), self.case.length)
        parts = training_memory(self.step.model, self.step.hparams, lengths)
        fixed = sum(parts[name] for name in ("weights", "gradients", "optimizer"))
        return {"needs_gb": sum(parts.values()) / 1e9, "fixed_gb": fixed / 1e9}

    def take(self, steps):
        """Takes steps; returns the loss of the last step, in nats per target token."""
        for _ in range(steps):
            batches, placed = self.feed.take()
            self.feed.fetch_ahead()
            started = time.perf_counter()
            result = self.step(placed)
            self.launching += time.perf_counter() - started
        return float(result["nats"]["targets"]) / batches.counts["targets"]

    def run(self):
        """Takes the steps of one turn; returns figures."""
        waited, launching, started = self.feed.seconds_waited, self.launching, time.perf_counter()
        loss = self.take(self.case.steps)
        seconds = time.perf_counter() - started
        shares = {
            "waiting": (self.feed.seconds_waited - waited) / seconds,
            "launching": (self.launching - launching) / seconds,  # near 1 if the device's queue is always full
        }
        return {"tokens": self.case.tokens * self.case.steps, **shares, "loss": loss}

    def end(self):
        """Ends the feed's thread and removes the records."""
        self.feed.__exit__(None, None, None)
        self._folder.cleanup()


class SearchWork:
    """Translates a batch of sources, or continues a batch of prompts, with a model that has random weights.

    Args:
        case: cases.Translating or cases.Generating.
        xla_compile: bool.
    """

    def __init__(self, case, xla_compile=True):
        from t2t_lite.decoding.search.searcher import Searcher
        from t2t_lite.settings.search_options import SearchOptions

        self.case, translates = case, case.work == "translate"
        self.model = new_model(case)
        self.searcher = Searcher(
            self.model, lambda length, options: case.new, end_id=None, continues_inputs=not translates
        )
        self.sources = random_ids(case, case.batch).tolist()
        self.options = SearchOptions(
            beam_size=case.beam_size if translates else 1, alpha=0.6, extra_length=case.new, batch_size=case.batch,
            compile=xla_compile,
        )  # fmt: skip

    def warm(self):
        """Searches once, which includes compiling, and then twice more; returns figures."""
        started = time.perf_counter()
        self.run()
        seconds = time.perf_counter() - started
        for _ in range(2):
            self.run()
        return {"compile_seconds": round(seconds, 2)}

    def run(self):
        """Searches once; returns the numbers of sentences and tokens."""
        outputs = self.searcher.search(self.sources, self.options)
        lengths = {len(hypotheses[0].ids) for hypotheses in outputs}
        if lengths != {self.case.new}:
            raise RuntimeError(f"outputs have {sorted(lengths)} ids, expected {self.case.new}")
        work_done = {"sentences": self.case.batch}
        return work_done if self.case.work == "translate" else {**work_done, "tokens": self.case.batch * self.case.new}

    def needs(self):
        """Returns {}: the memory of searches is not estimated."""
        return {}

    def end(self):
        """Does nothing: a search has no threads to stop."""


def new_model(case):
    """Creates a model with random weights in the case's dtype, for searches."""
    import tensorflow as tf

    from t2t_lite.models.transformer import Transformer
    from t2t_lite.models.transformer_lm import TransformerLM

    sizes = dict(SIZES[case.model])
    layers = sizes.pop("num_hidden_layers")
    if case.work == "translate":
        model = Transformer(
            case.vocab_size, num_encoder_layers=layers, num_decoder_layers=layers, dtype=case.dtype, **sizes
        )
        model({"inputs": tf.ones((1, 2), tf.int32), "targets": tf.ones((1, 2), tf.int32)})
        return model
    model = TransformerLM(
        case.vocab_size, num_layers=layers, norm="pre", position="learned", max_position=1024, attention_bias=True,
        activation="gelu_tanh", scale_embeddings=False, begin="end", dtype=case.dtype, **sizes,
    )  # fmt: skip
    model({"targets": tf.ones((1, 2), tf.int32)})
    return model


class Ours:
    """Handles the requests to this process, with one case at a time."""

    work, placed = None, None

    def hello(self):
        """Returns the versions and the GPU's name."""
        import keras
        import tensorflow as tf

        import t2t_lite

        gpus = tf.config.list_physical_devices("GPU")
        details = tf.config.experimental.get_device_details(gpus[0]) if gpus else {}
        if os.environ.get("T2T_DETERMINISTIC") and gpus:
            tf.config.experimental.enable_op_determinism()
        return {
            "side": "ours", "card": details.get("device_name"), "compute_capability": details.get("compute_capability"),
            "tensorflow": tf.__version__, "keras": keras.__version__, "t2t_lite": t2t_lite.__version__,
            "built": {k: v for k, v in tf.sysconfig.get_build_info().items() if isinstance(v, str)},
        }  # fmt: skip

    def warm(self, case, xla_compile=True):
        """Creates the model of a case, given as JSON, and runs it until it is warm."""
        import tensorflow as tf

        self.drop()
        case, started = from_json(case), time.perf_counter()
        self.work = (TrainingWork if case.work == "train" else SearchWork)(case, xla_compile)
        try:
            figures, self.placed = profile.placement(self.work.warm)
        except tf.errors.ResourceExhaustedError as error:
            words = next((line for line in error.message.splitlines() if "memory" in line), "out of memory")
            return {"error": words.rstrip("."), **self.work.needs()}
        if name := card():
            tf.config.experimental.reset_memory_stats(name.removeprefix("/device:"))
        return {"ready_seconds": round(time.perf_counter() - started, 2), **figures}

    def turn(self):
        """Runs one turn of the case; returns figures."""
        started = time.perf_counter()
        figures = self.work.run()
        return {"seconds": time.perf_counter() - started, **figures, "peak_gb": peak_gb()}

    def kernels(self, steps=5):
        """Returns the kernels and copies of the warm case, by time: see `profile.kernels`."""
        self.work.take(2)
        return profile.kernels(lambda: self.work.take(steps), steps)

    def placement(self):
        """Returns the devices of the warm case's operations: see `profile.placement`."""
        return self.placed

    def drop(self):
        """Frees the memory of the current case."""
        if self.work is not None:
            self.work.end()
        self.work = None
        gc.collect()
        return {}


def main():
    """Answers requests until standard input ends."""
    ours = Ours()
    names = "hello", "warm", "turn", "kernels", "placement", "drop"
    answer({name: getattr(ours, name) for name in names})


if __name__ == "__main__":
    main()
