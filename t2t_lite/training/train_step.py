"""The training step: one optimizer update over all replicas, with losses divided by the global numbers of ids."""

import itertools
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.layers import TokenEmbedding, dropout_seed
from t2t_lite.models.outputs import next_state, with_state
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.training.distribution import update_locally
from t2t_lite.training.objectives import layer_losses, mean_loss, objective_sums
from t2t_lite.training.optimization.stability import is_to_blame, make_loss_scale


class PlacedBatches(NamedTuple):
    """The inputs of a training step, placed on the devices that use them.

    Attributes:
        batches: list of dicts of int64 features for this machine's replicas, each on the device of its replica.
        counts: {feature: float32 scalar}, the number of non-zero ids in the step on all machines, in host memory.
        first: int32 scalar, in host memory, the data-stream index of the step's first batch over all machines.
    """

    batches: list
    counts: dict
    first: tf.Tensor


class TrainStep:
    """A training step, which computes gradients on `replicas x accumulation` batches and applies one update.

    The loss of a feature is the sum over its ids, divided by the GLOBAL number of its ids in the step. Gradients are
    summed over replicas and accumulated batches. So N replicas or N accumulated batches give the same update as a
    single batch with all rows.

    Args:
        model: keras.Model that maps a dict of features to outputs for `named_outputs`, built in the strategy's scope.
        optimizer: Keras optimizer, built in the same scope.
        replicas: Replicas.
        hparams: HParams, of which label_smoothing, gradient_accumulation_steps, clip_grad_norm, random_seed and
            max_skipped_steps are used.
        xla_compile: bool, whether XLA compiles the gradient computation, once per batch shape and replica, when the
            shape first occurs.
        features: {feature: rank} of a batch, where the rank is 2 for [rows, length] and 1 for [rows].
        avoids_scatter: bool, whether gradients of embedding lookups are matrix products, because a deterministic
            scatter compiled by XLA for a GPU processes one row after another.
        carried: CarriedState if the model carries a state from step to step, otherwise None. Batch b of a step reads
            the state that batch b of the previous step returned.

    Attributes:
        batches_a_step: int, the number of batches per step.
        loss_scale: LossScale for float16, otherwise None.
        traces: int, how often the step has been traced. One trace serves all batch shapes.
    """

    def __init__(
        self,
        model,
        optimizer,
        replicas,
        hparams,
        xla_compile=False,
        features=SequenceModel.features,
        avoids_scatter=False,
        carried=None,
    ):
        self.model = model
        for layer in model._flatten_layers():
            if isinstance(layer, TokenEmbedding):
                layer.avoids_scatter = avoids_scatter
        self.optimizer = optimizer
        if replicas.strategy is not None:
            update_locally(optimizer, replicas.strategy)
        self.replicas = replicas
        self.hparams = hparams
        self.xla_compile = xla_compile
        self.features = features
        self.carried = carried
        self.accumulation = hparams.gradient_accumulation_steps
        self.batches_a_step = replicas.count * self.accumulation
        self.traces = 0
        # On one device, XLA also compiles the update, which has no branch. With replicas, a collective operation runs
        # before the update, and the host decides whether to skip the update.
        self._compiles_update = xla_compile and replicas.strategy is None
        with tf.device(replicas.devices[0] if self._compiles_update else "CPU:0"):
            self._skipped_in_a_row = tf.Variable(0, dtype=tf.int64, trainable=False, name="skipped_in_a_row")
            self.loss_scale = make_loss_scale(hparams)
        batch = {feature: tf.TensorSpec([None] * rank, tf.int64) for feature, rank in features.items()}
        # The dtype of a batch's index in the data stream. Without XLA, the seeds of dropout are computed on the host,
        # where int32 scalars stay.
        self._index = tf.int64 if xla_compile else tf.int32
        number = tf.TensorSpec([], tf.float32)
        scalars = [dict.fromkeys(features, number), tf.TensorSpec([], tf.int32), number]
        # One signature for all shapes, since tracing the base model takes ten seconds. Autograph is off because it
        # reads source files at run time, when they may have been replaced.
        lanes, state = len(replicas.devices) * self.accumulation, carried.spec if carried else ()
        signature = [[batch] * lanes, *scalars, [state] * lanes]
        self._step = tf.function(self._traced_step, input_signature=signature, autograph=False)
        # Traced once per replica and called once per batch. If it were inlined, the graph would grow with the
        # accumulation.
        self._batch_gradients = tf.function(
            self._traced_batch,
            input_signature=[batch, scalars[0], tf.TensorSpec([], self._index), number, state],
            autograph=False,
            jit_compile=xla_compile or None,  # False would exclude this function from compiled callers
            experimental_attributes={"_noinline": True},
        )
        self._update = self._traced_update
        if self._compiles_update:
            self._update = tf.function(self._traced_update, autograph=False, jit_compile=True)

    def place(self, batches):
        """Copies the batches of a step to the devices of their replicas.

        The ids become int64, because TensorFlow keeps int32 arguments of functions in host memory, and also compares
        int32 tensors there, even if everything else is on a GPU (tensorflow/core/framework/types.h, MTypeFromDType).
        With int32 ids, a step would begin with copies to the GPU.

        Args:
            batches: StepBatches.

        Returns:
            PlacedBatches.
        """
        placed, per_replica = [], self.accumulation
        for replica, device in enumerate(self.replicas.devices, self.replicas.first_replica):
            with tf.device(device):
                for batch in batches.batches[replica * per_replica : (replica + 1) * per_replica]:
                    placed.append({feature: tf.cast(ids, tf.int64) for feature, ids in batch.items()})
        with tf.device("CPU:0"):
            counts = {feature: tf.constant(count, tf.float32) for feature, count in batches.counts.items()}
            return PlacedBatches(placed, counts, tf.constant(batches.first, tf.int32))

    def __call__(self, placed, stop=False):
        """Applies one optimizer update.

        Args:
            placed: PlacedBatches.
            stop: bool, whether this machine wants to stop after the step.

        Returns:
            A dict of float32 scalars, on the device until they are fetched: "objective", "nats", "cost", "added" and
            "shares" (dicts, as in `objectives.Sums`; shares are vectors), "gradient_norm" (global, before clipping),
            "skipped" (1.0 if the loss or the gradient was not finite, so weights were not changed), "stops" (more than
            0 if any machine wants to stop), and in float16 the step's "loss_scale". After `max_skipped_steps`
            consecutive skipped steps, not counting steps that a lower loss scale may prevent, further steps have no
            effect.
        """
        with tf.device("CPU:0"):
            stop = tf.constant(float(stop))
        metrics, states = self._step(*placed, stop, self._states())
        if self.carried is not None:
            self.carried.now = states
        return metrics

    def _states(self):
        return [()] * len(self.replicas.devices) * self.accumulation if self.carried is None else self.carried.now

    def graph(self):
        """Returns the `tf.Graph` of a step, for inspection."""
        return self._step.get_concrete_function().graph

    def variables(self):
        """Returns the TensorFlow variables, including replica copies, that a step uses and that checkpoints save."""
        step_variables = [self._skipped_in_a_row, *(self.loss_scale.variables if self.loss_scale else ())]
        saved = [*(variable.value for variable in (*self.model.variables, *self.optimizer.variables)), *step_variables]
        copies = [] if self.replicas.strategy is None else map(self.replicas.strategy.experimental_local_results, saved)
        return [*saved, *itertools.chain.from_iterable(copies)]

    def compile_for(self, batch):
        """Compiles the gradient computation for the shape of a batch.

        Args:
            batch: {feature: int [rows, length] or [rows]}.

        Raises:
            tf.errors.OpError: if XLA cannot compile the model.
        """
        batch = {feature: tf.cast(ids, tf.int64) for feature, ids in batch.items()}
        counts, state = dict.fromkeys(self.features, tf.constant(1.0)), self._states()[0]

        def on_replica():  # without this wrapper, `strategy.run` would use only one device
            return self._batch_gradients(batch, counts, tf.constant(0, self._index), tf.constant(1.0), state)

        tf.function(lambda: self.replicas.run(on_replica), autograph=False)()

    def _traced_step(self, batches, counts, first_batch, stop, states):
        self.traces += 1
        scale = self._scale()
        sums, new_states = self._global_sums(batches, counts, first_batch, scale, stop, states)
        return self._update(*sums, scale, states, new_states)

    def _traced_update(self, gradients, sums, stops, scale, states, new_states):
        """Updates the weights from the results of `_global_sums`; returns (metrics, list of the lanes' states)."""
        gradients, metrics = self.replicas.run(self._clipped, gradients, sums, stops, scale)
        # All replicas have the same sums and therefore the same metrics.
        metrics = tf.nest.map_structure(self.replicas.first, metrics)
        # The host checks metrics only after later steps. If too many steps were skipped, the state is frozen until
        # then, because it is saved for debugging.
        with tf.device(None if self._compiles_update else "CPU:0"):  # "skipped" is the only value copied to the host
            in_a_row = self._skipped_in_a_row.read_value()
            is_frozen, is_skipped = in_a_row >= max(self.hparams.max_skipped_steps, 1), metrics["skipped"] > 0
            is_left_out = is_frozen | is_skipped
        self._apply_unless(is_left_out, gradients)
        with tf.device(None if self._compiles_update else "CPU:0"):
            more = tf.constant(1, tf.int64)
            if self.loss_scale is not None:
                metrics["loss_scale"] = scale
                self.loss_scale.update(is_skipped, is_frozen)
                more = tf.where(is_to_blame(scale), tf.zeros_like(more), more)
            self._skipped_in_a_row.assign(tf.where(is_frozen, in_a_row, tf.where(is_skipped, in_a_row + more, 0)))
        return metrics, self._states_unless(is_left_out, states, new_states)

    def _states_unless(self, is_left_out, states, new_states):
        """Returns the new states of the lanes, or the old states if the step is skipped, on each lane's device."""
        chosen = []
        for lane, pair in enumerate(zip(states, new_states, strict=True)):
            device = None if self._compiles_update else self.replicas.devices[lane // self.accumulation]
            with tf.device(device):
                chosen.append(tf.nest.map_structure(lambda old, new: tf.where(is_left_out, old, new), *pair))
        return chosen

    def _scale(self):
        return tf.constant(1.0) if self.loss_scale is None else self.loss_scale.value.read_value()

    def _apply(self, gradients):
        self.optimizer.apply(gradients, self.model.trainable_variables)

    def _apply_unless(self, is_skipped, gradients):
        if not self._compiles_update:
            tf.cond(is_skipped, lambda: None, lambda: self._apply(gradients))
            return
        # The update is not in a branch, because the device would then wait for the host. XLA needs only one pass over
        # a variable to update it and to select the old or the new value.
        state = [variable.value for variable in [*self.model.trainable_variables, *self.optimizer.variables]]
        before = [variable.read_value() for variable in state]
        self._apply(gradients)
        for variable, old in zip(state, before, strict=True):
            variable.assign(tf.where(is_skipped, old, variable))

    def _clipped(self, gradients, sums, stops, scale):
        """Clips the gradients of one replica; returns (gradients, metrics) from its copy of the global sums."""
        if self.loss_scale is not None:
            gradients = [gradient / scale for gradient in gradients]
        # LoRA matrices are float32 even if all other weights have half precision.
        is_mixed = len({gradient.dtype for gradient in gradients}) > 1
        summed = [tf.cast(gradient, tf.float32) for gradient in gradients] if is_mixed else gradients
        norm = tf.linalg.global_norm(summed)
        parts = tf.nest.flatten([sums.objective, sums.cost, sums.added])
        finite = tf.math.is_finite(norm) & tf.math.is_finite(tf.add_n(parts))
        if self.hparams.clip_grad_norm > 0:
            clipped, _ = tf.clip_by_global_norm(summed, self.hparams.clip_grad_norm, use_norm=norm)
            gradients = [tf.cast(value, old.dtype) for value, old in zip(clipped, gradients, strict=True)]
        skipped = 1.0 - tf.cast(finite, tf.float32)
        norm = tf.cast(norm, tf.float32)  # `fetch` stacks all metrics, so they must have one dtype
        return gradients, {**sums._asdict(), "gradient_norm": norm, "skipped": skipped, "stops": stops}

    def _global_sums(self, batches, counts, first_batch, scale, stop, states):
        """Returns ((gradients, Sums, stops), states of this machine's lanes) of a step.

        Gradients, Sums and stops are summed over replicas, with a copy on each device. The gradients are of the scaled
        loss. The Sums are neither scaled nor divided by counts.
        """

        def on_replica(batches, counts, first_batch, scale, stop, states):
            # Every replica receives the batches of all replicas on its machine, and selects its own batches by its
            # replica id, which is known during tracing.
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            replica = replica if isinstance(replica, int) else int(tf.get_static_value(replica))
            begin = (replica - self.replicas.first_replica) * self.accumulation
            inputs = [each[begin : begin + self.accumulation] for each in (batches, states)]
            *sums, own_states = self._replica_gradients(replica, *inputs, counts, first_batch, scale)
            return (*sums, tf.identity(stop)), own_states

        sums, states = self.replicas.run(on_replica, batches, counts, first_batch, scale, stop, states)
        return self.replicas.all_reduce(sums), self.replicas.in_turn(states)

    def _replica_gradients(self, replica, batches, states, counts, first_batch, scale):
        """Returns (gradients, Sums, new states) for one replica's batches; `replica` is its global number."""
        sums, new_states = (), []
        for i, (batch, state) in enumerate(zip(batches, states, strict=True), replica * self.accumulation):
            # Batches run one after another; in parallel, TensorFlow would hold the activations of all batches at the
            # same time.
            with tf.control_dependencies(tf.nest.flatten(sums)):
                index = tf.cast(first_batch + i, self._index)
                *one, state = self._batch_gradients(batch, counts, index, scale, state)
            new_states.append(state)
            sums = one if not sums else tf.nest.map_structure(tf.add, sums, one)
        return *sums, new_states

    def _traced_batch(self, batch, counts, index, scale, state):
        """Returns (gradients of the scaled loss, Sums, new state) for the batch number `index` of the data stream."""
        variables = [v.value for v in self.model.trainable_variables]
        # The gradient is computed inside this context, because with recompute_grad the backward pass samples dropout
        # masks again.
        with dropout_seed(index, self.hparams.random_seed, in_xla=self.xla_compile):
            # Only trainable variables are watched, so nothing is stored for frozen weights or for layers below all
            # trained layers.
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(variables)
                outputs = self.model(with_state(self.model, batch, state, training=True), training=True)
                sums = objective_sums(outputs, batch, self.hparams.label_smoothing, not self.xla_compile)
                sums = sums._replace(added=layer_losses(self.model, self.batches_a_step))
                loss = mean_loss(sums, counts) * scale
            gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        # The gradient of a lookup is sparse, but the gradient of the tied output layer is dense. The two gradients can
        # only be added as dense tensors.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, sums, next_state(outputs, state)
