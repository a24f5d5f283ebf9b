"""Compares two ways to compute the loss over a large vocabulary: in blocks of rows, and with all logits in memory.

python -m benchmarks.card.loss_blocks --once    # each side in a separate process, for its peak memory

The two ways are compared in their results, time and memory. The logits of gpt2_small for 24 rows of 1,024 ids take
4.9 GB in float32, and each pass over them takes time. With blocks, a loop computes the logits of some rows together
with their cross-entropy and its gradients, and keeps only the loss and the gradients of the states and the kernel. No
product is computed twice, because later operations affect the gradient of a sum only by a factor. Nothing in the
package uses this method.
"""

import json
import resource
import subprocess
import sys
import time

from benchmarks.card.ours import card, peak_gb
from benchmarks.card.talk import answer
from benchmarks.harness.turns import ROOT

_SHAPE, _TOY = (24 * 1024, 768, 50_257, 4096), (2048, 128, 20_000, 256)  # rows, hidden size, ids, rows per block
_TURNS = 5
_TOLERANCE = 1e-6  # relative error of the loss


def plain(hidden, kernel, targets):
    """Returns the sum of the cross-entropies of all rows in nats, float32 [].

    Args:
        hidden: float [R, D], the states before the softmax.
        kernel: float [V, D], the embedding matrix, which the softmax shares.
        targets: int32 [R].
    """
    import tensorflow as tf

    logits = tf.cast(tf.matmul(hidden, kernel, transpose_b=True), tf.float32)
    return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits))


def in_blocks(hidden, kernel, targets, block):
    """Computes the same as `plain` with the logits of only `block` rows at a time; R is a multiple of `block`."""
    import tensorflow as tf

    @tf.custom_gradient
    def loss_of(hidden, kernel):
        size, vocab_size = hidden.shape[-1], kernel.shape[0]
        rows = tf.reshape(hidden, (-1, block, size))
        ids = tf.reshape(targets, (-1, block))
        blocks = rows.shape[0]

        def add(at, loss, of_hidden, of_kernel):
            states = rows[at]
            logits = tf.cast(tf.matmul(states, kernel, transpose_b=True), tf.float32)
            loss += tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(ids[at], logits))
            wrong = tf.cast(tf.nn.softmax(logits) - tf.one_hot(ids[at], vocab_size), hidden.dtype)
            of_hidden = of_hidden.write(at, tf.matmul(wrong, kernel))
            of_kernel += tf.cast(tf.matmul(wrong, states, transpose_a=True), tf.float32)
            return at + 1, loss, of_hidden, of_kernel

        begin = (0, 0.0, tf.TensorArray(hidden.dtype, blocks, element_shape=(block, size)), tf.zeros(kernel.shape))
        _, loss, of_hidden, of_kernel = tf.while_loop(
            lambda at, *_: at < blocks, add, begin, parallel_iterations=1, maximum_iterations=blocks
        )
        of_hidden = tf.reshape(of_hidden.stack(), hidden.shape)

        def gradient(upstream):
            return tf.cast(upstream, hidden.dtype) * of_hidden, tf.cast(upstream * of_kernel, kernel.dtype)

        return loss, gradient

    return loss_of(hidden, kernel)


class Side:
    """Computes the loss in one of the two ways, with random states.

    Args:
        name: "plain" or "blocks".
        is_toy: bool, whether to use sizes for a CPU.
    """

    def __init__(self, name, is_toy):
        import tensorflow as tf

        rows, size, vocab_size, block = _TOY if is_toy else _SHAPE
        dtype = tf.float32 if is_toy else tf.bfloat16
        self.hidden = tf.cast(tf.random.stateless_normal((rows, size), (1, 2)), dtype)
        self.kernel = tf.cast(tf.random.stateless_normal((vocab_size, size), (3, 4)) * size**-0.5, dtype)
        self.targets = tf.random.stateless_uniform((rows,), (5, 6), 0, vocab_size, tf.int32)

        @tf.function(jit_compile=True)
        def step(hidden, kernel, targets):
            with tf.GradientTape() as tape:
                tape.watch([hidden, kernel])
                more = (block,) if name == "blocks" else ()
                loss = (in_blocks if name == "blocks" else plain)(hidden, kernel, targets, *more)
            return [loss, *tape.gradient(loss, [hidden, kernel])]

        self.run = lambda: step(self.hidden, self.kernel, self.targets)

    def measure(self):
        """Returns "seconds" per step, "peak_gb" of the GPU or this process, "loss", and gradient "norms", as a dict."""
        import tensorflow as tf

        loss, *gradients = self.run()
        norms = [float(tf.norm(tf.cast(gradient, tf.float32))) for gradient in gradients]
        seconds = []
        for _ in range(_TURNS):
            started = time.perf_counter()
            self.run()[0].numpy()
            seconds.append(time.perf_counter() - started)
        peak = peak_gb() if card() else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        return {"seconds": min(seconds), "peak_gb": peak, "loss": float(loss), "norms": norms}


def compare():
    """Checks that both ways agree in loss and gradients, and measures each in a separate process."""
    sides = {}
    for name in ("plain", "blocks"):
        words = [sys.executable, "-m", "benchmarks.card.loss_blocks", name]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
        sides[name] = json.loads(lines[-1])
    one, other = sides["plain"], sides["blocks"]
    gap = abs(one["loss"] - other["loss"]) / one["loss"]
    of_norms = max(abs(a - b) / a for a, b in zip(one["norms"], other["norms"], strict=True))
    times = ", ".join(f"{name} {1e3 * s['seconds']:.0f} ms, {s['peak_gb']:.2f} GB" for name, s in sides.items())
    says = f"losses differ by {gap:.1e}, gradient norms by {of_norms:.1e}; {times}"
    return {"ok": gap <= _TOLERANCE and of_norms <= (1e-2 if card() else 1e-5), "says": says, "sides": sides}


if __name__ == "__main__":
    if sys.argv[1:] in (["plain"], ["blocks"]):
        print(json.dumps(Side(sys.argv[1], not card()).measure()))
    elif sys.argv[1:] == ["--once"]:
        print(json.dumps(compare()))
    else:
        answer({"compare": compare})
