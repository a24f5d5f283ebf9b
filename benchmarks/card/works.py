"""Checks that the package works on a GPU; a process that answers requests of `benchmarks/gpu.py`.

python -m benchmarks.card.works

The answer of a check has the items "ok" and "says", which is a sentence with figures.
"""

import dataclasses
import glob
import os
import subprocess
import sys
import tempfile

from benchmarks.card import profile
from benchmarks.card.cases import Training
from benchmarks.card.ours import card, features_of, hparams_of, new_step
from benchmarks.card.talk import answer

_TOLERANCE = 1e-3  # largest allowed difference between the GPU's and the CPU's float32 logits without TF32


def case_of(is_toy, dtype="float32"):
    """Returns the Training case that the checks use, with base size or toy size."""
    return Training("toy", 4, 8, dtype, 2, 100) if is_toy else Training("base", 64, 32, dtype)


def random_batch(case, seed=0):
    """Returns {feature: int32 ids} with random lengths, padded with 0."""
    import numpy as np

    draw = np.random.default_rng(seed)
    shape = case.rows, case.length
    lengths = draw.integers(2, case.length + 1, case.rows)[:, None]
    at = np.arange(case.length)
    batch = {}
    for feature in features_of(case):
        ids = np.where(at < lengths - 1, draw.integers(2, case.vocab_size, shape), at == lengths - 1)
        batch[feature] = ids.astype("int32")
    return batch


def train_once(step, batches):
    """Takes one training step on the batches; returns the loss in nats per target token."""
    from t2t_lite.training.training_data import StepBatches

    step_batches = StepBatches(batches, 0)
    return float(step(step.place(step_batches))["nats"]["targets"]) / step_batches.counts["targets"]


def step(dtype, xla_compile, is_toy=False):
    """Checks that three training steps of `transformer_base_v1` on one batch have finite losses."""
    case = case_of(is_toy, dtype)
    train = new_step(
        case, hparams_of(case, learning_rate_schedule="constant", learning_rate_constant=1e-4), xla_compile
    )
    batch = random_batch(case)
    first, placed = profile.placement(lambda: train_once(train, [batch]))
    losses = [first, train_once(train, [batch]), train_once(train, [batch])]
    is_ok = all(0 < loss < 1e3 for loss in losses)
    says = f"loss {losses[0]:.4f}, {losses[1]:.4f}, {losses[2]:.4f} on the same batch"
    return {"ok": is_ok, "says": says, "losses": losses, "placement": placed}


def logits(is_toy=False):
    """Compares float32 logits without TF32 with the logits that the CPU computes from the same weights."""
    import numpy as np
    import tensorflow as tf

    case = case_of(is_toy)
    batch = random_batch(case)
    model = new_step(case, hparams_of(case), False).model
    logits_by_name = {}
    for name, is_tf32 in (("TF32", True), ("float32", False)):
        tf.config.experimental.enable_tensor_float_32_execution(is_tf32)
        logits_by_name[name] = model(batch, training=False).numpy()
    with tf.device("CPU:0"):
        twin = type(model).from_config(model.get_config())
        twin(batch, training=False)
        for weight, value in zip(twin.weights, model.weights, strict=True):
            weight.assign(value.numpy())
        exact = twin(batch, training=False).numpy()
    tf.config.experimental.enable_tensor_float_32_execution(True)
    differences = {name: float(np.abs(logits - exact).max()) for name, logits in logits_by_name.items()}
    says = f"largest difference {differences['float32']:.1e}, with TF32 {differences['TF32']:.1e}"
    return {"ok": differences["float32"] <= _TOLERANCE, "says": says, **differences}


def search(is_toy=False):
    """Compares beam search with XLA to beam search without XLA, both in float32 without TF32."""
    import tensorflow as tf

    from benchmarks.card.cases import Translating
    from benchmarks.card.ours import SearchWork

    tf.config.experimental.enable_tensor_float_32_execution(False)
    case = Translating("toy", 2, "float32", 6, 5, 100) if is_toy else Translating("base", 8, "float32", 24, 16)
    work = SearchWork(case)
    compiled = work.searcher.search(work.sources, work.options)
    options = dataclasses.replace(work.options, compile=False)
    plain, placement = profile.placement(lambda: work.searcher.search(work.sources, options))
    tf.config.experimental.enable_tensor_float_32_execution(True)
    same = [a[0].ids == b[0].ids for a, b in zip(compiled, plain, strict=True)]
    gap = max(abs(a[0].score - b[0].score) for a, b in zip(compiled, plain, strict=True))
    says = f"{sum(same)} of {len(same)} outputs equal, scores within {gap:.1e}"
    return {"ok": gap <= _TOLERANCE, "says": says, "placement": placement}


def replicas(is_toy=False):
    """Compares training on two logical replicas of the GPU with one replica that accumulates the same batches."""
    import numpy as np
    import tensorflow as tf

    from t2t_lite.training.distribution import Replicas, choose_replicas

    kind = "GPU" if (gpus := tf.config.list_physical_devices("GPU")) else "CPU"
    device = gpus[0] if gpus else tf.config.list_physical_devices("CPU")[0]
    memory = {"memory_limit": 12_000} if gpus else {}
    tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration(**memory)] * 2)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    case = case_of(is_toy)
    batches = [random_batch(case, 1), random_batch(case, 2)]
    weights, losses = [], []
    for count in (2, 1):
        settings = {"gradient_accumulation_steps": 2 // count, "optimizer": "sgd", "learning_rate_schedule": "constant"}
        hparams = hparams_of(case, learning_rate_constant=1.0, **settings)
        tf.keras.utils.set_random_seed(1)
        both = [f"/{kind}:0", f"/{kind}:1"]
        if count == 2:
            placement = Replicas(tf.distribute.MirroredStrategy(both), 2, "")
        else:
            placement = choose_replicas(int(bool(gpus)))
        train = new_step(case, hparams, False, placement)
        initial = [np.array(v) for v in train.model.trainable_variables]
        losses.append(train_once(train, batches))
        weights.append([np.array(v) - old for v, old in zip(train.model.trainable_variables, initial, strict=True)])
    norm = lambda arrays: sum(float((a.astype("float64") ** 2).sum()) for a in arrays) ** 0.5  # noqa: E731
    gap = norm([a - b for a, b in zip(*weights, strict=True)]) / norm(weights[1])
    says = f"updates differ by {gap:.1e} of their size, losses {losses[0]:.5f} and {losses[1]:.5f}"
    return {"ok": gap <= 1e-5, "says": says, "difference": gap}


def _command(name, *words):
    """Starts a command of the package that this process imports; returns the process."""
    return subprocess.Popen(
        [sys.executable, "-m", f"t2t_lite.bin.{name}", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def _finish(*processes):
    for process in processes:
        _, errors = process.communicate()
        if process.returncode:
            lines = [line for line in errors.splitlines() if line.strip()]
            raise RuntimeError(f"{process.args[2]} ended with {process.returncode}: {lines[-1] if lines else ''}")


def _differences(folders):
    """Returns (number of variables that differ between checkpoints, number of variables, relative norm difference)."""
    import numpy as np
    import tensorflow as tf

    readers = [tf.train.load_checkpoint(tf.train.latest_checkpoint(folder)) for folder in folders]
    names = [n for n, d in readers[0].get_variable_to_dtype_map().items() if d == tf.float32]
    pairs = [tuple(reader.get_tensor(name) for reader in readers) for name in names]
    different = sum(not np.array_equal(*pair) for pair in pairs)
    square = lambda arrays: sum(float((np.asarray(a, "float64") ** 2).sum()) for a in arrays)  # noqa: E731
    return different, len(pairs), (square([a - b for a, b in pairs]) / square([a for a, _ in pairs])) ** 0.5


def run(is_toy=False):
    """Trains with the commands, with and without an interruption and with and without determinism; then exports.

    The answer has two checks, "resumed" and "export".
    """
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (registers the operations of the export)

    half, all_steps = (2, 4) if is_toy else (20, 40)
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        problem = "--problem=translate_ende_phrasebook"
        _finish(_command("t2t_datagen", problem, f"--data_dir={data}", f"--tmp_dir={folder}/tmp"))

        def train(name, steps, *words):
            return _command(
                "t2t_trainer", problem, f"--data_dir={data}", f"--output_dir={folder}/{name}", f"--train_steps={steps}",
                "--hparams_set=transformer_tiny", "--schedule=train", *words,
            )  # fmt: skip

        first = [("straight", all_steps), ("halves", half)]
        if not is_toy:  # a CPU always adds in the same order
            first += [("free_straight", all_steps, "--nodeterministic"), ("free_halves", half, "--nodeterministic")]
        _finish(*(train(*arguments) for arguments in first))
        _finish(*(train(name, all_steps, *words) for name, steps, *words in first if steps == half))
        different, count, _ = _differences([f"{folder}/straight", f"{folder}/halves"])
        says = f"{different} of {count} variables differ from those of an uninterrupted run"
        if not is_toy:
            _, _, gap = _differences([f"{folder}/free_straight", f"{folder}/free_halves"])
            says += f"; with --nodeterministic the weights differ by {gap:.1e} of their norm"
        resumed = {"ok": different == 0, "says": says}
        _finish(_command("t2t_exporter", f"--output_dir={folder}/straight", f"--export_dir={folder}/export"))
        (path,) = glob.glob(f"{folder}/export/*")
        outputs = tf.saved_model.load(path).signatures["serving_default"](
            inputs=tf.constant(["The old woman sleeps.", ""])
        )
        texts = [text.decode() for text in outputs["outputs"].numpy()]
        is_ok = len(texts) == 2 and texts[1] == ""
        return {"ok": resumed["ok"] and is_ok, "says": says, "resumed": resumed,
                "export": {"ok": is_ok, "says": f"2 sentences gave {texts!r}"[:200]}}  # fmt: skip


def devices(is_toy=False):
    """Checks that a matrix product is computed on the GPU."""
    import tensorflow as tf

    x = tf.random.normal([256, 256])
    y = tf.matmul(x, x)
    on_card = card() is not None and "GPU" in y.device
    return {"ok": on_card or is_toy, "says": f"a product was computed on {y.device.rpartition('/')[2] or y.device}"}


def main():
    """Answers requests until standard input ends."""
    answer({check.__name__: check for check in (devices, step, logits, search, replicas, run)})


if __name__ == "__main__":
    main()
