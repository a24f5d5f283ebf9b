"""Adam (Kingma and Ba, 2015; paper, section 5.3) whose update of a variable is one fused operation."""

import keras


@keras.saving.register_keras_serializable("t2t_lite")
class Adam(keras.optimizers.Adam):
    """`keras.optimizers.Adam`, the same formula, in one pass over each variable and its moments instead of ten.

    This applies to TensorFlow; other backends use Keras' update. Everything but the update is Keras' own.
    """

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable by TensorFlow's own kernel."""
        if self.amsgrad or keras.backend.backend() != "tensorflow":
            return super().update_step(gradient, variable, learning_rate)
        import tensorflow as tf

        index, dtype = self._get_variable_index(variable), variable.dtype
        step = tf.cast(self.iterations.value + 1, dtype)
        beta_1, beta_2 = (tf.cast(beta, dtype) for beta in (self.beta_1, self.beta_2))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=beta_1**step,
            beta2_power=beta_2**step,
            lr=tf.cast(learning_rate, dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.cast(self.epsilon, dtype),
            grad=gradient,
        )
