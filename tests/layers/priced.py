"""A layer with costs."""

from keras import ops

from t2t_lite import layers


class Priced(layers.FeedForward):
    """A network each of whose outputs has a price: the mean of its squares, 0 at padding."""

    has_costs = True

    def call(self, inputs, context=None, training=None):
        output = super().call(inputs, training=training)
        if context is not None:
            price = ops.mean(ops.square(ops.cast(output, "float32")), axis=-1)
            context.results.add("cost", ops.where(context.nonpadding, price, 0.0))
            context.results.add("first", output[:, 0])
        return output
