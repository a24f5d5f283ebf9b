"""Where the batches of a run come from: examples, of models that read each batch for itself."""

from t2t_lite.data import batching
from t2t_lite.data.corruption import batch_features
from t2t_lite.data.split_facts import longest_row
from t2t_lite.registry import register_batches


@register_batches("examples")
class ExampleBatches:
    """Batches whose rows are examples.

    Args:
        problem: Problem.
        hparams: HParams, as for `batching.training_batches`.
        encoders: {feature: encoder}; None: ids are not checked.
        lanes: what `lanes_of` returns; in evaluation 1.

    Attributes:
        hparams: HParams, by whose limits examples are left out.
        features: {feature: rank} of a batch.
        longest: int, the most ids of a row in training.
        left_out: str, which examples are left out.
        rows_per_example: int.
        ladder: WidthLadder, the shapes that batches have in training; None: any.
    """

    rows_per_example = 1
    ladder = None

    def __init__(self, problem, hparams, encoders=None, lanes=None):
        self.problem, self.hparams, self.encoders, self.lanes = problem, hparams, encoders, lanes
        self.features = batch_features(problem, hparams.model_class)
        self.longest = longest_row(problem, hparams)
        self.left_out = f"longer than {self.longest} ids"

    @staticmethod
    def lanes_of(replicas, accumulation, before, output_dir):
        """Returns the number of lanes of a run, places of batches in a step by which a state is carried; None: none is.

        Args:
            replicas: Replicas.
            accumulation: int, batches that each replica accumulates per step.
            before: dict, the `hparams.json` of the resumed run, or None.
            output_dir: str.
        """

    def carried(self, model, devices, accumulation):
        """Returns the state that a model carries from step to step: see `TrainStep`; None: it carries none.

        Args:
            model: keras.Model.
            devices: list of str, of this machine's replicas.
            accumulation: int, batches that each replica accumulates per step.
        """

    def first_state(self, model):
        """Returns the state with which a model begins an evaluation; (): there is none."""
        return ()

    def training(self, paths, facts, most_shapes=None):
        """Returns the endless stream of one replica's batches.

        Args:
            paths: list of str, the record files.
            facts: facts of the split as the model sees it.
            most_shapes: int, how many shapes the batches may have, as XLA needs; None: any number.
        """
        arguments = self.problem, self.hparams, paths, self.encoders
        self.ladder = batching.problem_ladder(*arguments, facts, most_shapes) if most_shapes else None
        return batching.training_batches(*arguments, self.ladder)

    def evaluation(self, paths, in_order=False):
        """Returns the batches of one pass; `in_order`: whether the records, one after the other, are one text."""
        return batching.evaluation_batches(self.problem, self.hparams, paths, self.encoders)

    def whole(self, paths):
        """Returns the examples of `evaluation`, in their order, without what the model's `corrupt` does to them."""
        return batching.evaluation_batches(self.problem, self.hparams, paths, self.encoders, whole=True)

    def narrowest(self):
        """Returns a batch of padding in the first shape that XLA compiles."""
        return batching.narrowest_batch(self.problem, self.hparams, self.ladder)
