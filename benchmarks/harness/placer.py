"""Predicts where a graph's operations would run on a machine with a GPU, and what would be copied. It needs no GPU.

Even without a GPU, TensorFlow's CUDA build lists its kernels and which of their arguments are in host memory. In
TensorFlow's placer (tensorflow/core/common_runtime/placer.cc, colocation_graph.cc), an operation

* runs on its explicit device, or else on the GPU if there is a kernel for its types;
* is placed with the variable that it reads or writes, and with the operations that it is colocated with;
* is placed on the host if it has no inputs and all consumers of its output are on the host; if it computes a shape, it
  is placed with its input.

If a GPU kernel has its results in host memory, it computes on the host. This applies to most int32 kernels, because
TensorFlow assumes that int32 tensors are shapes. Arguments and results of functions, branches and loops are on the GPU
if their caller is, except for int32 tensors (memory_types.cc). A tensor is copied only once in each direction, however
many operations use it.

Operations that TensorFlow fuses or rewrites, and the insides of functions that XLA compiles, are not predicted.
"""

import collections
import functools
import typing

import tensorflow as tf
from tensorflow.python.framework import function_def_to_graph, kernels

HOST, CARD = "host", "gpu"
# {attribute with the body of a call: number of the call's first inputs that are not arguments of the body}.
_BODIES = {"f": 0, "then_branch": 1, "else_branch": 1, "cond": 0, "body": 0}
_CALLS = ("PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "While", "StatelessWhile")
_HANDLES = (tf.resource, tf.variant)


class Operation(typing.NamedTuple):
    """An operation and where it computes; `path` has the names of the enclosing calls, branches and loops."""

    path: tuple
    name: str
    type: str
    where: str


class Crossing(typing.NamedTuple):
    """A tensor that is copied to HOST or CARD; `takers` are the types of its consumers there, or "result"."""

    path: tuple
    name: str
    type: str
    dtype: str
    to: str
    takers: tuple


def on_card():
    """Returns the context in which variables for the GPU are to be created.

    The graph must be traced outside this context. The logical CPU "CPU:1" stands for the GPU, and "CPU:0" for the host.
    """
    return tf.device("CPU:1")


def placed(function):
    """Places the graph of a function, and of all functions that it calls, as TensorFlow would with one GPU.

    Args:
        function: `tf.types.experimental.ConcreteFunction`, or its graph. Its int32 and scalar arguments are in host
            memory, as if Python made them; other arguments are on the GPU.

    Returns:
        (list of Operation, list of Crossing), in which the body of a loop counts once.
    """
    graph = getattr(function, "graph", function)
    locations = {x.op.name: HOST if x.dtype == tf.int32 or not x.shape.rank else CARD for x in graph.inputs}
    locations |= {inner.op.name: CARD if "CPU:1" in outer.device else HOST for outer, inner in graph.captures}
    library = {definition.signature.name: definition for definition in graph.as_graph_def().library.function}
    operations, crossings = [], []
    _place(graph, locations, None, (), library, operations, crossings)
    return operations, crossings


def _place(graph, locations, results, path, library, operations, crossings):
    """Adds a graph's operations and crossings; `locations` is {input: location}, `results` the results' locations."""
    ops = _needed(graph)
    devices, constant = _devices(ops, locations), _constant(ops, locations)
    memory, takers, same = {}, collections.defaultdict(set), {}

    def take(tensor, where, taker):
        if tensor.dtype not in _HANDLES and memory[tensor.ref()] != where:
            takers[same.get(tensor.ref(), tensor.ref()), where].add(taker)

    for op in ops:
        device, (_, inputs, outputs) = devices[op.name], _kernel(op)
        if op.type == "Identity" and not op.device:  # TensorFlow removes Identity operations
            source, tensor = op.inputs[0].ref(), op.outputs[0].ref()
            same[tensor], memory[tensor] = same.get(source, source), memory[source]
            continue
        for i, tensor in enumerate(op.outputs):
            memory[tensor.ref()] = locations.get(op.name, HOST if i in outputs else device)
        for i, tensor in enumerate(() if op.name in constant else op.inputs):
            take(tensor, HOST if i in inputs else device, op.type)
        if op.name not in locations:
            computes = {memory[tensor.ref()] for tensor in op.outputs} or {device}
            operations.append(Operation(path, op.name, op.type, HOST if computes == {HOST} else CARD))
    for tensor, where in zip(graph.outputs, results or (), strict=results is not None):
        take(tensor, where, "result")
    for (ref, where), types in takers.items():
        tensor = ref.deref()
        crossings.append(Crossing(path, tensor.op.name, tensor.op.type, tensor.dtype.name, where, tuple(sorted(types))))
    for op in ops:
        for attribute, first in _BODIES.items() if op.type in _CALLS and not _is_compiled(op, library) else ():
            if attribute in op.node_def.attr:
                body = function_def_to_graph.function_def_to_graph(library[op.node_def.attr[attribute].func.name])
                lie = [HOST if x.dtype == tf.int32 else devices[op.name] for x in body.inputs]
                for i, tensor in enumerate(op.inputs[first:]):
                    lie[i] = memory[tensor.ref()] if tensor.dtype in _HANDLES else lie[i]
                inner = {x.op.name: where for x, where in zip(body.inputs, lie, strict=True)}
                there = HOST if attribute == "cond" else devices[op.name]
                result_locations = [HOST if x.dtype == tf.int32 else there for x in body.outputs]
                _place(body, inner, result_locations, (*path, op.name), library, operations, crossings)


def _needed(graph):
    """Returns the operations that TensorFlow does not prune, in the graph's order."""
    operations = graph.get_operations()
    names, waiting = {x.op.name for x in graph.inputs}, [x.op for x in graph.outputs] + list(graph.control_outputs)
    while waiting:
        op = waiting.pop()
        if op.name not in names:
            names.add(op.name)
            waiting += [x.op for x in op.inputs] + list(op.control_inputs)
    return [op for op in operations if op.name in names]


def _constant(operations, locations):
    """Returns the names of operations whose results TensorFlow computes only once (constant folding)."""
    names = set()
    for op in operations:
        fixed = not (op.name in locations or op.op_def.is_stateful or op.control_inputs or op.type in _CALLS)
        if fixed and all(x.op.name in names for x in op.inputs):
            names.add(op.name)
    return names


def _devices(operations, locations):
    """Returns the device of each operation, {name: HOST or CARD}."""
    group = {op.name: {op.name} for op in operations}
    for op in operations:
        others = [name.decode().removeprefix("loc:@") for name in op.colocation_groups()]
        others += [x.op.name for x in op.inputs if x.dtype == tf.resource and op.type not in _CALLS]
        for other in others:
            if other in group and group[other] is not group[op.name]:
                group[op.name] |= group[other]
                group.update(dict.fromkeys(group[other], group[op.name]))
    devices = dict.fromkeys(group, CARD)
    for op in operations:
        is_there = op.name in locations and locations[op.name] == HOST and op.outputs[0].dtype == tf.resource
        if is_there or not _kernel(op)[0] or ("CPU" in op.device and "CPU:1" not in op.device):
            devices.update(dict.fromkeys(group[op.name], HOST))
    for op in operations:
        if op.type in ("Shape", "ShapeN", "Size", "Rank") and not op.device:
            devices[op.name] = devices[op.inputs[0].op.name]
        elif not (op.inputs or op.device or op.name in locations):
            takers = {devices.get(taker.name, HOST) for tensor in op.outputs for taker in tensor.consumers()}
            devices[op.name] = HOST if takers == {HOST} else devices[op.name]
    return devices


def _is_compiled(op, library):
    attributes = op.node_def.attr
    both = [attributes, library[attributes["f"].func.name].attr] if "f" in attributes else [attributes]
    return any("_XlaMustCompile" in attrs and attrs["_XlaMustCompile"].b for attrs in both)


def _kernel(op):
    """Returns (whether there is a GPU kernel, indices of inputs in host memory, indices of outputs in host memory)."""
    if op.type in _CALLS:
        inputs, outputs = ({i for i, x in enumerate(side) if x.dtype == tf.int32} for side in (op.inputs, op.outputs))
        return True, inputs | ({0} if op.type in ("If", "StatelessIf") else set()), outputs
    for types, on_host in _kernels(op.type):
        values = {attribute: op.node_def.attr[attribute] for attribute in types}
        if all((set(value.list.type) or {value.type}) <= types[attribute] for attribute, value in values.items()):
            return True, *(_indices(op, args, on_host) for args in (op.op_def.input_arg, op.op_def.output_arg))
    return False, set(range(len(op.inputs))), set(range(len(op.outputs)))


@functools.cache
def _kernels(op_type):
    """Returns ({attribute: its types}, names in host memory) for each kernel, the GPU's first, then general ones."""
    by_device = {"GPU": [], "DEFAULT": []}
    for kernel in kernels.get_registered_kernels_for_op(op_type).kernel:
        if kernel.device_type in by_device and not kernel.label:
            types = {c.name: set(c.allowed_values.list.type) for c in kernel.constraint if c.allowed_values.list.type}
            by_device[kernel.device_type].append((types, set(kernel.host_memory_arg)))
    return by_device["GPU"] + by_device["DEFAULT"]


def _indices(op, args, names):
    """Returns the indices of the tensors that belong to the arguments `names`."""
    owners = []
    for arg in args:
        listed = op.node_def.attr[arg.type_list_attr].list.type if arg.type_list_attr else [arg.type]
        owners += [arg.name] * (op.node_def.attr[arg.number_attr].i if arg.number_attr else len(listed))
    return {i for i, name in enumerate(owners) if name in names}
