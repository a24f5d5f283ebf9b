"""The settings, data and state shared by the parts of a run, and the random state saved in checkpoints."""

import contextlib
import dataclasses
import functools
import re

import tensorflow as tf

from t2t_lite.layers.dropout import ScopedSeed, has_own_generator
from t2t_lite.models.fine_tuning import parameters
from t2t_lite.runs.checkpoints import RunCheckpoints
from t2t_lite.runs.log import RunLog
from t2t_lite.runs.run_config import build_model
from t2t_lite.runs.weights import trackable
from t2t_lite.settings.config import HParams
from t2t_lite.training.distribution import Replicas
from t2t_lite.training.monitor import check_metrics
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.settings import CheckpointSettings, DeviceSettings, EvaluationSettings, LogSettings
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import TrainingData, check_lengths, check_reads

# Random TensorFlow operations, whose state is not saved in checkpoints.
_DRAWS = re.compile(r"(?!Stateless)(\w*Random\w*|\w*TruncatedNormal|Multinomial|Stateful\w*(Normal|Uniform)\w*|Rng\w+|"
                    r"(Eager)?PyFunc)")  # fmt: skip
_KNOWN = ("t2t_lite", "keras")  # packages whose layers sample only from generators that checkpoints save


@dataclasses.dataclass(frozen=True)
class RunContext:
    """The settings, data and devices of a run, which are known before its model is built.

    Attributes:
        output_dir: str.
        config: dict, the contents of the run's `hparams.json`.
        hparams: HParams.
        accumulation: int, the number of batches per step on each replica. May differ from gradient_accumulation_steps.
        data: TrainingData.
        replicas: Replicas.
        evaluation: EvaluationSettings, or None if the run is not evaluated.
        checkpoints: CheckpointSettings.
        devices: DeviceSettings.
        progress: LogSettings.
    """

    output_dir: str
    config: dict
    hparams: HParams
    accumulation: int
    data: TrainingData
    replicas: Replicas
    evaluation: EvaluationSettings | None
    checkpoints: CheckpointSettings
    devices: DeviceSettings
    progress: LogSettings

    @functools.cached_property
    def log(self):
        """The `RunLog`, to which only the first machine writes."""
        return RunLog(self.output_dir, is_silent=not self.replicas.is_chief)


class TrainingState:
    """The model, optimizer and data position of a run, which are saved in its checkpoints.

    Args:
        context: RunContext.
        train_steps: int, the length of the run, on which learning rates may depend.

    Attributes:
        model: keras.Model, built.
        optimizer: the Keras optimizer of the model.
        train_step: TrainStep.
        step: tf.Variable, int64 scalar, the number of completed steps.
        batches_read: tf.Variable, int64 scalar, the number of batches used by the completed steps.
        iterator: iterator over the batches of the data, at position `batches_read`.
        checkpoints: RunCheckpoints, which saves these objects.

    Raises:
        UserError: if model, data and metrics do not match.
    """

    def __init__(self, context, train_steps):
        data, replicas = context.data, context.replicas
        with replicas.scope():
            self.model = model = build_model(context.config)
            self.optimizer = make_optimizer(context.hparams, train_steps, model)
            self.optimizer.build(model.trainable_variables)
        check_reads(model, data.problem)
        check_lengths(model, data.source.longest, data.problem.features)
        if context.evaluation:
            check_metrics(model, data.problem, context.hparams, context.evaluation)
        hparams = context.hparams.override_from_dict({"gradient_accumulation_steps": context.accumulation})
        compiles, deterministic = context.config["xla_compile"], context.devices.deterministic
        self.train_step = TrainStep(
            model, self.optimizer, replicas, hparams, compiles, data.source.features,
            avoids_scatter=compiles and deterministic and bool(tf.config.get_visible_devices("GPU")),
            carried=data.source.carried(model, replicas.devices, context.accumulation),
        )  # fmt: skip
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self.batches_read = tf.Variable(0, dtype=tf.int64, trainable=False, name="batches_read")
        self.iterator = iter(data.batches)
        self.checkpoints = RunCheckpoints(
            context.output_dir, model, self.optimizer, context.checkpoints.keep_checkpoint_max or None,
            context.checkpoints.keep_checkpoint_every_n_hours, self.train_step.carried, step=self.step,
            batches_read=self.batches_read, iterator=self.iterator, loss_scale=self.train_step.loss_scale,
            generators=trackable(states) if (states := generator_states(model)) else None,
        )  # fmt: skip

    def set_position(self, step, batches):
        """Sets the position that checkpoints save to the end of `step`, whose StepBatches are `batches`."""
        self.step.assign(step)
        self.batches_read.assign(batches.end)


def generator_states(model):
    """Returns the states of all `keras.random.SeedGenerator`s in a model's layers, {number as a str: variable}.

    The numbers do not depend on other models in the process. Generators of `t2t_lite.layers.Dropout` are omitted.
    """
    generators = (seed for layer in model._flatten_layers() for seed in layer._seed_generators)
    own = dict.fromkeys(seed for seed in generators if not isinstance(seed, ScopedSeed))
    return {f"{i:04d}": generator.state.value for i, generator in enumerate(own)}


def layers_that_draw(model):
    """Returns the class names of the model's layers that have a stateful random generator."""
    return sorted({type(layer).__name__ for layer in model._flatten_layers() if has_own_generator(layer)})


def unsaved_state(train_step):
    """Describes the state that a step uses but checkpoints do not save, as a list of str for the user.

    The graph of the step is searched for operations and variables. The search is skipped if all layers of the model
    are from this package and from Keras, because all state of these layers is saved.

    Args:
        train_step: TrainStep.
    """
    if all(type(layer).__module__.partition(".")[0] in _KNOWN for layer in train_step.model._flatten_layers()):
        return []
    graph = train_step.graph()
    nodes = [node for function in graph.as_graph_def().library.function for node in function.node_def]
    draws = {f"{node.op} in {node.name.rpartition('/')[0] or node.name}" for node in nodes if _DRAWS.fullmatch(node.op)}
    saved = {id(variable) for variable in train_step.variables()}
    variables = {variable.name.partition(":")[0] for variable in graph.variables if id(variable) not in saved}
    return sorted(draws) + [
        f"variable {name} (checkpoints only save weights and variables of layers)" for name in variables
    ]


@contextlib.contextmanager
def kept_states(model):
    """Context manager that restores the counters of layers and the states of generators when it exits."""
    weights = {id(weight) for weight in parameters(model)}  # frozen weights are included, but do not change
    before = [(variable, variable.numpy()) for variable in model.non_trainable_variables if id(variable) not in weights]
    try:
        yield
    finally:
        for variable, value in before:
            variable.assign(value)
