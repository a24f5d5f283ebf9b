"""Steps of models of which parts are frozen, or that have LoRA: what is computed, what is kept, and what changes."""

# Nearest tests of: t2t_lite/training/train_step.py

import numpy as np
import pytest

from tests.training.steps import make_step, placed, settings, stream

pytestmark = pytest.mark.slow  # steps are traced

LORA = ",lora_rank=2,lora_alpha=4"


def products(step):
    """The number of matrix products in a batch's pass forward and backward."""
    graph = step._batch_gradients.get_concrete_function().graph
    return sum("MatMul" in operation.type for operation in graph.get_operations())


def values(model):
    return {weight.path: weight.numpy() for weight in model.weights}


@pytest.mark.few("other parts", "lora and parts")
@pytest.mark.parametrize(
    ("more", "trained"),
    [
        (",frozen=embedding/encoder", "/decoder"),
        (",frozen=decoder/encoder,weight_decay=0.1,clip_grad_norm=0.1,ema_decay=0.9", "/embedding/"),
        (LORA, "/lora_kernel_"),
        (f"{LORA},frozen=encoder,recompute_grad=1", None),
        (f"{LORA},frozen=encoder,unfreeze_steps=1", None),
    ],
    ids=["two parts", "other parts", "lora", "lora and parts", "lora, parts and gradual unfreezing"],
)
def test_what_is_frozen_stays_as_it_was_and_costs_nothing(more, trained):
    step = make_step(settings("adam", more=more))
    model, before = step.model, values(step.model)
    for _ in range(3):
        metrics = step(placed(step, stream()[:1]))
    after, frozen = values(model), {w.path for w in model.non_trainable_weights}
    for path in before:
        assert np.array_equal(before[path], after[path]) == (path in frozen), path
        if trained:
            assert (trained in path) == (path not in frozen), path
        elif "/encoder/" in path:
            assert "/lora_" not in path and path in frozen
        elif "/lora_" in path:
            assert "/decoder/" in path and path not in frozen
    slots = sum(variable.shape.num_elements() for variable in step.optimizer.variables if len(variable.shape))
    count = sum(w.shape.num_elements() for w in model.trainable_weights)
    assert slots == count * (3 if "ema" in more else 2)
    assert float(metrics["gradient_norm"]) > 0


def test_the_backward_pass_leaves_out_what_lies_below_all_that_is_trained():
    counts = {more: products(make_step(settings(more=more))) for more in ("", ",frozen=embedding/encoder", LORA)}
    # A layer of the encoder has 4 + 2 kernels and two products of attention, that of the decoder 8 + 2 and four, and
    # there is the softmax: each product has two gradients.
    forward = 4 + 2 + 2 + 8 + 2 + 4 + 1
    assert counts[""] == 3 * forward
    # No gradient of the encoder and the softmax's matrix, nor of the states that the decoder's queries, keys and values
    # are made of, of which only the memory is frozen, too.
    assert counts[",frozen=embedding/encoder"] < 3 * (8 + 2 + 4) + 8 + 2
    kernels = 4 + 2 + 8 + 2
    assert counts[LORA] <= 2 * forward + kernels * 4 * 2  # none of a kernel
