"""What the host does while it trains, by a trace of two logical CPUs: nothing that a device would wait for."""

# Nearest tests of: t2t_lite/training/loop.py, t2t_lite/training/profiling.py

import concurrent.futures
import glob

import pytest
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from t2t_lite.training import loop as loop_module
from t2t_lite.training import run_context
from t2t_lite.training.progress import ProgressLine
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import Feed
from tests.training.runs import SIZES, small_trainer

pytestmark = pytest.mark.slow  # it trains with a profile

HPARAMS = f"{SIZES},gradient_accumulation_steps=2,eval_decode_examples=0"
TRACED, BATCHES_A_STEP = 5, 4


class OnDevice:
    """A tensor that tells when it is brought to the host, and that nothing but TensorFlow can look at."""

    def __init__(self, tensor, on_fetch):
        self.tensor, self.on_fetch = tensor, on_fetch

    def __tf_tensor__(self, dtype=None, name=None):
        self.on_fetch()
        return self.tensor


class WaitingFeed(Feed):
    """A feed that is not reading when the trace begins or ends, so that its counts are those of whole steps."""

    def fetch_ahead(self):
        super().fetch_ahead()
        concurrent.futures.wait([self._ahead])


@pytest.fixture(scope="module")
def run(data_dir, tmp_path_factory):
    """A run of 20 steps: (those after which metrics were fetched, {event of the trace: how often})."""
    folder = tmp_path_factory.mktemp("run")
    settings = {"logical_cpus": 2, "local_eval_frequency": 100, "log_step_count_steps": 9, "profile": True}
    trainer = small_trainer(data_dir, folder, HPARAMS, **settings)
    step, fetched = 0, set()

    class Spied(TrainStep):
        def __call__(self, *arguments):
            nonlocal step
            step += 1
            result = super().__call__(*arguments)
            return tf.nest.map_structure(lambda value: OnDevice(value, lambda: fetched.add(step)), result)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_context, "TrainStep", Spied)
        patch.setattr(loop_module, "Feed", WaitingFeed)
        patch.setattr(ProgressLine, "is_due", False)  # as on a fast machine
        trainer.train(20)
    (path,) = glob.glob(f"{folder}/plugins/profile/*/*.xplane.pb")
    with open(path, "rb") as file:
        trace = xplane_pb2.XSpace.FromString(file.read())
    events = {}
    for plane in trace.planes:
        for event in (event for line in plane.lines for event in line.events):
            name = plane.event_metadata[event.metadata_id].name
            events[name] = events.get(name, 0) + 1
    return fetched, events


def test_metrics_are_fetched_for_the_lines_of_the_log(run):
    assert run[0] == {1, 9, 18, 20}, "the first step, which is traced, then each line and the end"


def test_between_two_lines_the_host_reads_batches_places_them_and_calls_the_step(run):
    called = {name.removeprefix("EagerLocalExecute: "): n for name, n in run[1].items() if "LocalExecute" in name}
    (step,) = (name for name in called if "traced_step" in name)
    tensors = TRACED * BATCHES_A_STEP * 2  # sides
    assert called == {"IteratorGetNext": tensors // 2, "Cast": tensors, step: TRACED}


def test_within_a_step_no_batch_passes_from_device_to_device(run):
    sent = {name.partition("/")[0] for name in run[1] if name.endswith(":_Send")}
    assert {"counts", "first_batch"} <= sent, "scalars come from the host"
    assert not {name for name in sent if "batches" in name or "inputs" in name or "targets" in name}
