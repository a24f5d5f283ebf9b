"""One optimizer step over all replicas, exact in the global number of tokens, in one trace."""

import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.layers import dropout_seed
from t2t_lite.training.local_updates import update_locally
from t2t_lite.training.losses import cross_entropy


class TrainStep:
    """Takes `replicas x accumulation` batches of the stream and applies one update.

    The loss is a sum over tokens divided by the step's GLOBAL number of tokens; gradients are summed over replicas and
    accumulated batches. So N replicas, or N accumulated batches, give the update of their concatenation.

    Args:
        model: keras.Model mapping {"inputs", "targets"} to logits, built under the strategy's scope.
        optimizer: Keras optimizer, built likewise.
        replicas: Replicas.
        hparams: HParams: label_smoothing, gradient_accumulation_steps, clip_grad_norm, random_seed are used.

    Attributes:
        batches_a_step: int, how many batches of the stream a step takes.
        traces: int, how often the step was traced: once, whatever the shapes.
    """

    def __init__(self, model, optimizer, replicas, hparams):
        self.model = model
        self.optimizer = optimizer
        if replicas.strategy is not None:
            update_locally(optimizer, replicas.strategy)
        self.replicas = replicas
        self.hparams = hparams
        self.accumulation = hparams.gradient_accumulation_steps
        if "float16" in hparams.dtype_policy.replace("bfloat16", ""):
            raise UserError(
                f"dtype_policy={hparams.dtype_policy}: float16 needs its loss scaled, which is not proven right under "
                "several replicas. Use mixed_bfloat16, which needs none."
            )
        self.batches_a_step = replicas.count * self.accumulation
        self.traces = 0
        ids = tf.TensorSpec([None, None], tf.int32)
        scalars = [tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.float32)]
        # One signature for all shapes: a trace of a base model takes ten seconds. Without autograph, which reads source
        # files while the program runs: they may have been replaced by then.
        signature = [[{"inputs": ids, "targets": ids}] * self.batches_a_step, *scalars]
        self._step = tf.function(self._traced_step, input_signature=signature, autograph=False)
        # Traced once a replica, called once a micro-batch; not inlined, or the graph would grow with the accumulation.
        self._batch_gradients = tf.function(
            self._traced_batch,
            input_signature=[signature[0][0], *scalars[:2]],
            autograph=False,
            experimental_attributes={"_noinline": True},
        )

    def __call__(self, batches, first_batch, stop=False):
        """Applies one update.

        Args:
            batches: list of `batches_a_step` dicts of int32 "inputs", "targets" [rows, length].
            first_batch: int, index of the first of them in the stream.
            stop: bool, whether this machine wants to stop after the step.

        Returns:
            dict of float32 scalars: "objective" and "nats" (sums over tokens), "tokens", "gradient_norm" (global,
            before clipping), "skipped" (1.0 where the loss or the gradient was not finite, and nothing was changed),
            "stops" (more than 0 where any machine wants to stop).
        """
        tokens = tf.add_n([tf.math.count_nonzero(batch["targets"], dtype=tf.float32) for batch in batches])
        metrics = self._step(batches, tokens, tf.constant(first_batch, tf.int64), tf.constant(float(stop)))
        return {**metrics, "tokens": tokens}

    def gradients(self, batches, first_batch):
        """Returns the global gradient of a step, a list beside the model's trainable variables; for inspection."""
        tokens = tf.add_n([tf.math.count_nonzero(batch["targets"], dtype=tf.float32) for batch in batches])
        arguments = batches, tokens, tf.constant(first_batch, tf.int64), tf.constant(0.0)
        gradients, *_ = tf.function(self._global_sums, autograph=False)(*arguments)
        return [self.replicas.first(gradient) for gradient in gradients]

    def _traced_step(self, batches, tokens, first_batch, stop):
        self.traces += 1
        sums = self._global_sums(batches, tokens, first_batch, stop)
        gradients, metrics = self.replicas.run(self._clipped, *sums)
        # All replicas have the same sums, and so come to the same numbers: those of any will do.
        metrics = {name: self.replicas.first(value) for name, value in metrics.items()}
        tf.cond(metrics["skipped"] > 0, lambda: None, lambda: self._apply(gradients))
        return metrics

    def _apply(self, gradients):
        self.optimizer.apply(gradients, self.model.trainable_variables)

    def _clipped(self, gradients, objective, nats, stops):
        """Returns (gradients, metrics) of one replica, from its copy of the global sums."""
        norm = tf.linalg.global_norm(gradients)
        finite = tf.math.is_finite(norm) & tf.math.is_finite(objective)
        if self.hparams.clip_grad_norm > 0:
            gradients, _ = tf.clip_by_global_norm(gradients, self.hparams.clip_grad_norm, use_norm=norm)
        skipped = 1.0 - tf.cast(finite, tf.float32)
        metrics = {"objective": objective, "nats": nats, "gradient_norm": norm, "skipped": skipped, "stops": stops}
        return gradients, metrics

    def _global_sums(self, batches, tokens, first_batch, stop):
        """Returns (gradients, objective, nats, stops), summed over replicas: each has the sums on its own device.

        Objective and nats are not divided by the tokens.
        """

        def on_replica(batches, tokens, first_batch, stop):
            # Every replica gets all batches and picks its own: the id is known while tracing.
            replica = tf.distribute.get_replica_context().replica_id_in_sync_group
            replica = replica if isinstance(replica, int) else int(tf.get_static_value(replica))
            return *self._replica_gradients(replica, batches, tokens, first_batch), tf.identity(stop)

        return self.replicas.all_reduce(self.replicas.run(on_replica, batches, tokens, first_batch, stop))

    def _replica_gradients(self, replica, batches, tokens, first_batch):
        """The sums over one replica's accumulated batches."""
        sums = ()
        for i in range(replica * self.accumulation, (replica + 1) * self.accumulation):
            # One after another: TensorFlow would run them side by side, and keep the activations of all.
            with tf.control_dependencies(tf.nest.flatten(sums)):
                one = self._batch_gradients(batches[i], tokens, first_batch + i)
            sums = one if not sums else tf.nest.map_structure(tf.add, sums, one)
        return sums

    def _traced_batch(self, batch, tokens, index):
        """Returns (gradients, objective, nats) of one batch, the index-th of the stream."""
        variables = [v.value for v in self.model.trainable_variables]
        with dropout_seed(index, self.hparams.random_seed):  # of the gradient too: recompute_grad draws masks again
            with tf.GradientTape() as tape:
                logits = self.model(batch, training=True)
                objective, nats = cross_entropy(logits, batch["targets"], self.hparams.label_smoothing)
                loss = objective / tokens
            gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        # The look-up's gradient is sparse, the tied softmax's dense; they add up, and reduce, only as dense ones.
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return gradients, objective, nats
