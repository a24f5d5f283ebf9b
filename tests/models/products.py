"""Counts what TensorFlow computes, for tests of what is counted from layers."""

import math

import tensorflow as tf
from tensorflow.python.framework import op_callbacks  # the debugger's; there is no public way to see what runs


def matrix_product_flops(operations):
    """2 · (elements of the result) · (what is summed over), of every matrix product in a graph."""
    flops = 0
    for op in operations:
        assert op.type != "Einsum" or len(op.inputs) == 1  # of one operand it only moves data
        if "MatMul" in op.type:
            is_turned = op.get_attr("transpose_a" if op.type == "MatMul" else "adj_x")
            flops += _flops(op.outputs[0].shape, op.inputs[0].shape, is_turned)
    return flops


def _flops(result, left, is_turned):
    return 2 * math.prod(result) * left[-2 if is_turned else -1]


def products_run(function):
    """Returns the operations of matrix products and convolutions that a function runs."""
    counts = []

    def count(op_type, inputs, attributes, outputs, *_, **__):
        op_type = tf.compat.as_str(op_type)
        if "MatMul" in op_type:
            named = dict(zip(map(tf.compat.as_str, attributes[::2]), attributes[1::2], strict=True))
            is_turned = named.get("transpose_a", named.get("adj_x", False))
            counts.append(_flops(outputs[0].shape, inputs[0].shape, is_turned))
        elif op_type.startswith("Conv"):
            counts.append(2 * math.prod(outputs[0].shape) * math.prod(inputs[1].shape[:-1]))

    op_callbacks.add_op_callback(count)
    try:
        function()
    finally:
        op_callbacks.remove_op_callback(count)
    return sum(counts)
