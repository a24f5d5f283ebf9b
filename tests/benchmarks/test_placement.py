"""What would be copied between a GPU and the host: the rules, and how little of it a step needs."""

import pytest
import tensorflow as tf

from benchmarks import placement
from benchmarks.harness.placer import CARD, HOST, on_card, placed
from t2t_lite.decoding.search.beam_search import beam_search
from t2t_lite.decoding.search.sampling import sample


def copies(function, to, *shapes, dtype=tf.float32):
    """(type of what makes a tensor, types of what takes it) for each that is copied; of a function of such tensors."""
    signature = [tf.TensorSpec(shape, dtype) for shape in shapes]
    _, crossings = placed(tf.function(function, input_signature=signature, autograph=False).get_concrete_function())
    return sorted((c.type, c.takers) for c in crossings if c.to == to)


def to_host(graph, depth):
    """The same of a graph, for what its functions, branches and loops at a depth copy to the host."""
    _, crossings = placed(graph)
    return sorted((c.type, c.takers) for c in crossings if c.to == HOST and len(c.path) == depth)


def test_int32_is_computed_on_the_host():
    def numbers(x):
        return tf.cast(tf.cast(x, tf.int32) + 1, tf.float32)

    assert copies(numbers, HOST, [3]) == [("Cast", ("AddV2",))]
    assert copies(numbers, CARD, [3]) == [("AddV2", ("Cast",))]
    assert copies(lambda x: x + 1, HOST, [3], dtype=tf.int64) == []


def test_what_a_device_says():
    def sums(x):
        with tf.device("CPU:0"):
            total = tf.reduce_sum(x)
            total *= 2.0  # as is a constant beside it
        return x + total + tf.sqrt(total)

    assert copies(sums, HOST, [3]) == [("Placeholder", ("Sum",))]
    assert copies(sums, CARD, [3]) == [("Mul", ("AddV2", "Sqrt"))]  # once for both


def test_variables_lie_where_they_were_made():
    with tf.device("CPU:0"):
        there = tf.Variable(1.0)
    with on_card():
        here = tf.Variable(1.0)
    assert copies(lambda x: here.assign(x[0]), HOST, [3]) == []
    assert copies(lambda x: there.assign(x[0]), HOST, [3]) == [("StridedSlice", ("AssignVariableOp",))]
    assert copies(lambda x: x * here, CARD, [3]) == []
    assert copies(lambda x: x * there, CARD, [3]) == [("ReadVariableOp", ("Mul",))]


def test_branches_and_loops():
    def chosen(x):
        return tf.cond(x[0] > 0, lambda: x + 1, lambda: x)

    def counted(x):
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))[1]

    def rounds(ids):
        return tf.while_loop(
            lambda ids: ids[0] < 3, lambda ids: (tf.gather(ids, [1, 2, 0]),), (tf.cast(ids, tf.int32),)
        )

    assert copies(chosen, HOST, [3]) == [("Greater", ("StatelessIf",))]
    assert copies(counted, HOST, [3]) == []  # its count and predicate never leave the host
    assert copies(rounds, HOST, [3]) == [("Cast", ("StatelessWhile",)), ("GatherV2", ("result",))]


@pytest.mark.slow
def test_a_training_step_waits_for_little():
    graph = placement.training_step()
    # Whether the update is left out: the branch is taken on the host. No dropout, and nothing of a batch.
    assert to_host(graph, 0) == [("Sub", ("Greater",))]
    assert to_host(graph, 1) == []


@pytest.mark.long
def test_a_step_of_a_search_waits_for_little():
    is_open, count = ("LogicalAnd", ("result",)), ("Cast", ("Sum",))
    # Whether a sentence is undecided, and how many are: whether to drop the others.
    assert to_host(placement.search(beam_search, beam_size=4), 2) == [count, is_open]
    assert to_host(placement.search(beam_search, beam_size=1), 2) == [count, is_open]
    assert to_host(placement.search(sample, seeds=True, top_k=10), 2) == [is_open]
    rules = {"penalizes_prompts": True, "no_repeat_ngram_size": 2}
    assert to_host(placement.search(beam_search, "transformer_lm", beam_size=2, **rules), 2) == [count, is_open]
    assert to_host(placement.search(sample, "transformer_lm", seeds=True, top_p=0.9, **rules), 2) == [is_open]


def test_an_unknown_graph_is_named_before_anything_is_traced(capsys):
    with pytest.raises(SystemExit, match="2"):
        placement.main(["--graphs=training,bean"])
    assert "--graphs: unknown values: bean. Choose one or more of training, mixed" in capsys.readouterr().err
