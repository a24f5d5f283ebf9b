"""Reads TensorFlow's profile of a step: kernels by time, and which operations ran on the host."""

import collections
import glob
import re
import tempfile

_MOST = 90  # maximum number of kernels to return
_LONG_GAP = 0.02  # in milliseconds; the usual gap between successive kernels is a tenth of this


def kernels(work, steps):
    """Runs some work under TensorFlow's profiler; returns kernels, gaps and copies by time.

    Args:
        work: function without arguments, which waits for the device.
        steps: int, the number of steps in the work.

    Returns:
        dict with the following items. The lists are empty if the profiler saw no device.

        * "busy": the share of the time in which a kernel ran.
        * "milliseconds": the time from a step's first kernel to the next step's first kernel.
        * "kernels": list of [name, milliseconds per step, times per step], longest first.
        * "launches": the number of kernels per step.
        * "gaps": list of [kernels before and after a gap, milliseconds per step, times per step].
        * "copies": {name of a copy: times per step}.
    """
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            work()
        paths = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        with open(paths[0], "rb") as file:
            planes = [plane for plane in XSpace.FromString(file.read()).planes if plane.name.startswith("/device:GPU")]
    milliseconds, times, spans = collections.Counter(), collections.Counter(), []
    for plane in planes:
        for line in plane.lines:
            if not line.name.startswith("Stream"):
                continue
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                begin = line.timestamp_ns / 1e6 + event.offset_ps / 1e9
                spans.append((begin, begin + event.duration_ps / 1e9, name))
                milliseconds[name] += event.duration_ps / 1e9 / steps
                times[name] += 1 / steps
    busy, reached, last_name = 0.0, min(spans, default=(0.0,))[0], ""
    gaps, gap_times = collections.Counter(), collections.Counter()
    for begin, end, name in sorted(spans):
        if begin > reached:
            gap = f"{last_name[:40]} … {name[:40]}" if begin - reached > _LONG_GAP else "shorter ones"
            gaps[gap] += (begin - reached) / steps
            gap_times[gap] += 1 / steps
        busy += max(0.0, end - max(begin, reached))
        reached, last_name = max(reached, end), name
    span = reached - min((begin for begin, *_ in spans), default=0.0)
    return {
        "busy": busy / span if span else 0.0,
        "milliseconds": span / steps,
        "kernels": [[name, round(ms, 4), round(times[name], 2)] for name, ms in milliseconds.most_common(_MOST)],
        "launches": round(sum(times.values())),
        "gaps": [[name, round(ms, 4), round(gap_times[name], 2)] for name, ms in gaps.most_common(_MOST // 3)],
        "copies": {name: round(count, 2) for name, count in times.items() if re.search("memcpy", name, re.IGNORECASE)},
        "lines": sorted({line.name for plane in planes for line in plane.lines})[:20],
    }


def placement(work):
    """Runs some work that calls its functions for the first time; counts the operations in their graphs per device.

    Args:
        work: function without arguments.

    Returns:
        (result of the work, dict). The dict has "host" and "device": {operation type: count} in the graphs of each; and
        "crossings": {tensor and its origin: count}, the tensors that are sent between host and device. An XLA function
        counts as one operation.
    """
    from tensorflow.python.eager import context

    eager_context = context.context()
    eager_context.ensure_initialized()
    eager_context.enable_graph_collection()
    try:
        result = work()
        metadata = eager_context.export_run_metadata()
    finally:
        eager_context.disable_graph_collection()
    operations = {"host": collections.Counter(), "device": collections.Counter()}
    crossings = collections.Counter()
    for graphs in metadata.function_graphs:
        for graph in graphs.partition_graphs:
            for node in graph.node:
                where = "device" if "GPU" in node.device else "host"
                if node.op in ("_Send", "_HostSend"):
                    crossings[f"{node.attr['tensor_name'].s.decode()} from {where}"] += 1
                elif node.op not in ("_Recv", "_HostRecv", "NoOp", "Const", "_Arg", "_Retval"):
                    operations[where][node.op] += 1
    return result, {
        **{where: dict(ops.most_common()) for where, ops in operations.items()},
        "crossings": dict(crossings),
    }
