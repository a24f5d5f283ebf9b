"""What several replicas cost: formulas against numbers computed by hand, and bytes against a real step's graph."""

import math

import pytest

from t2t_lite import registry
from t2t_lite.models.cost import PAPER, forward_flops, training_memory
from t2t_lite.models.describe import describe, shapes_only
from t2t_lite.models.scaling import (
    LINKS,
    UTILIZATION,
    Rates,
    all_reduced_bytes,
    largest_batch_size,
    sent_bytes,
    step_time,
)
from tests.training.test_train_step import VOCAB, make_step, settings

SENTENCES = {"inputs": 25, "targets": 25}
TINY = registry.hparams("transformer_tiny").parse("batch_size=100")


def described(hparams=TINY, **arguments):
    return describe(shapes_only(registry.model("transformer"), hparams, VOCAB), hparams, **arguments)


def value(text, name):
    """Returns what stands behind a name in a description."""
    (line,) = [line for line in text.splitlines() if line.strip().startswith(name)]
    return line.strip().removeprefix(name).strip()


@pytest.mark.slow
def test_the_bytes_are_those_of_the_collective_in_the_graph_of_a_step():
    step = make_step(settings("adam", accumulation=2, more=",dtype_policy=mixed_bfloat16"), replicas=2)
    operations = step.graph().get_operations()
    packed = [op.inputs[0].op for op in operations if op.type == "CollectiveReduceV2"]
    assert len(packed) == 2
    for buffer in packed:
        assert (buffer.type, buffer.outputs[0].dtype.size) == ("ConcatV2", 4)
        shapes = [piece.op.inputs[0].shape for piece in buffer.inputs[:-1]]  # the last one is the axis
        gradients = [shape for shape in shapes if shape.rank]
        variables = [variable.shape for variable in reversed(step.model.trainable_variables)]
        assert len(gradients) == len(variables)
        # An embedding's gradient has a number of rows that the graph does not know.
        assert all(shape.is_compatible_with(own) for shape, own in zip(gradients, variables, strict=True))
        numbers = sum(map(math.prod, variables)) + len(shapes) - len(gradients)
        assert 4 * numbers == all_reduced_bytes(sum(map(math.prod, variables)))


def ring(pieces):
    """All-reduces numbers by a ring, one piece at a time; returns the sums and how many pieces each replica sent."""
    count = len(pieces)
    held, sent = [list(own) for own in pieces], 0
    for turn in range(2 * (count - 1)):
        moving = [(replica, (replica - turn) % count) for replica in range(count)]
        values = [held[replica][piece] for replica, piece in moving]
        for (replica, piece), number in zip(moving, values, strict=True):
            neighbour = held[(replica + 1) % count]
            neighbour[piece] = number + (neighbour[piece] if turn < count - 1 else 0)
        sent += 1
    return held, sent


@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_a_ring_sends_as_much_as_one_that_is_run(replicas):
    pieces = [[10**replica + piece for piece in range(replicas)] for replica in range(replicas)]
    held, sent = ring(pieces)
    assert held == [[sum(column) for column in zip(*pieces, strict=True)]] * replicas
    assert sent_bytes(1000 * replicas, replicas) == 1000 * sent


def test_step_time_by_hand():
    # 8 MB by a ring of four: 12 MB at 3 GB/s, 4 ms. 2e9 operations at 1e11 a second: 20 ms.
    time = step_time(2e9, 8e6, 4, 1e11, 3e9)
    assert (time.compute, time.all_reduce, time.seconds) == pytest.approx((0.02, 0.004, 0.024))
    assert time.efficiency == pytest.approx(20 / 24)


@pytest.mark.parametrize("name, seconds", [("transformer_base_v1", 0.4), ("transformer_big_v1", 1.0)])
def test_the_papers_steps_take_as_long_as_the_paper_says(name, seconds):
    model = shapes_only(registry.model("transformer"), registry.hparams(name), 37_000)
    flops = forward_flops(model, SENTENCES)
    paper = PAPER[name]
    time = step_time(flops.training(paper.tokens) / 8, 0, 8, paper.sustained * UTILIZATION, 1)
    assert seconds <= time.seconds <= 1.45 * seconds


def test_a_description_of_eight_replicas_by_hand():
    hparams = TINY.parse("gradient_accumulation_steps=3")
    found = described(hparams, replicas=8, rates=Rates(tflops=2, utilization=0.5, link=4))
    text = found.text()
    buffer = 4 * (found.parameters + 3)
    compute = 3 * 300 * sum(found.flops.per_token.values()) / 1e12
    all_reduce = 1.75 * buffer / 4e9
    assert value(text, "gradients, in one buffer") == f"{buffer / 1e6:.1f} MB"
    assert value(text, "sent by each replica, in a ring") == f"{1.75 * buffer / 1e6:.1f} MB"
    assert "estimated at 50% of 2 TFLOP/s" in text
    assert value(text, "forward and backward pass") == f"{1e3 * compute:.1f} ms"
    assert value(text, "link, 4 GB/s each way: all-reduce") == f"{1e3 * all_reduce:.1f} ms"
    assert value(text, "whole step") == f"{1e3 * (compute + all_reduce):.1f} ms"
    share = compute / (compute + all_reduce)
    assert value(text, f"scaling efficiency, {8 * share:.3g} times one replica") == f"{share:.0%}"


@pytest.mark.parametrize("policy, peak", [("float32", "156"), ("mixed_bfloat16", "312")])
def test_the_defaults_are_an_a100_with_each_link(policy, peak):
    text = described(TINY.parse(f"dtype_policy={policy}"), replicas=8).text()
    assert f"estimated at 30% of {peak} TFLOP/s" in text
    assert [name for name in LINKS if f"  {name}, {LINKS[name]:g} GB/s each way" in text] == [
        "NVLink 3",
        "PCIe 4.0 x16",
    ]


def test_one_replica_exchanges_nothing():
    assert "all-reduce" not in described().text()


@pytest.mark.parametrize("gigabytes", [0.1, 1, 40])
@pytest.mark.parametrize("changes", ["", "batch_size=7,recompute_grad=1,gradient_accumulation_steps=2"])
def test_the_largest_batch_fits_and_one_token_more_does_not(gigabytes, changes):
    hparams = TINY.parse(changes)
    model = shapes_only(registry.model("transformer"), hparams, VOCAB)
    largest = largest_batch_size(training_memory(model, hparams, SENTENCES), hparams.batch_size, 1e9 * gigabytes)

    def needed(batch_size):
        return sum(training_memory(model, hparams.parse(f"batch_size={batch_size}"), SENTENCES).values())

    assert needed(largest) <= 1e9 * gigabytes < needed(largest + 1)
    text = described(hparams, rates=Rates(memory=gigabytes)).text()
    assert value(text, f"largest batch_size in {gigabytes:g} GB") == f"{largest:,}"


def test_no_batch_fits_beside_weights_that_fill_the_memory():
    found = described(rates=Rates(memory=0.001))
    fixed = sum(found.memory[name] for name in ("weights", "gradients", "optimizer"))
    assert fixed > 1e6
    said = value(found.text(), "largest batch_size in 0.001 GB")
    assert said == f": none fits; weights, gradients and optimizer take {fixed / 1e6:.1f} MB"


def test_a_batch_size_is_one_that_hparams_take():
    text = described(rates=Rates(memory=1e6)).text()
    largest = value(text, "largest batch_size in 1e+06 GB").replace(",", "")
    assert TINY.parse(f"batch_size={largest}").batch_size == int(largest)
