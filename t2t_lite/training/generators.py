"""Random numbers that layers draw by themselves, beside those of `t2t_lite.layers.Dropout`, which has no state."""

import contextlib
import re

from t2t_lite.layers.dropout import ScopedSeed, has_own_generator
from t2t_lite.models.fine_tuning import parameters

# Operations whose numbers follow from a state that no checkpoint of a run holds.
_DRAWS = re.compile(r"(?!Stateless)(\w*Random\w*|\w*TruncatedNormal|Multinomial|Stateful\w*(Normal|Uniform)\w*|Rng\w+|"
                    r"(Eager)?PyFunc)")  # fmt: skip
_KNOWN = ("t2t_lite", "keras")  # Keras' layers draw by generators alone


def generator_states(model):
    """Returns {number, as text: variable}, the states of all `keras.random.SeedGenerator`s of a model's layers.

    The numbers do not depend on other models of this process. Those of `t2t_lite.layers.Dropout` are left out.
    """
    generators = (found for layer in model._flatten_layers() for found in layer._seed_generators)
    own = dict.fromkeys(found for found in generators if not isinstance(found, ScopedSeed))
    return {f"{i:04d}": generator.state.value for i, generator in enumerate(own)}


def layers_that_draw(model):
    """Returns the classes, list of str, of a model's layers that draw from a generator of their own."""
    return sorted({type(layer).__name__ for layer in model._flatten_layers() if has_own_generator(layer)})


def unsaved_state(train_step):
    """Returns what a step depends on, or draws, without a checkpoint holding it: a list of str for the user.

    It looks for operations and variables in the graph of the step, but not where a model has only layers of this
    package and of Keras: of these all state is saved.

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
    return sorted(draws) + [f"variable {name}, no attribute of a layer or made by add_weight" for name in variables]


@contextlib.contextmanager
def kept_states(model):
    """Context manager after which counters of layers, and states of generators, are as before."""
    weights = {id(weight) for weight in parameters(model)}  # frozen ones among them, which nothing changes
    before = [(variable, variable.numpy()) for variable in model.non_trainable_variables if id(variable) not in weights]
    try:
        yield
    finally:
        for variable, value in before:
            variable.assign(value)
