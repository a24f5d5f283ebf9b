"""Adds your own kind of attention, talking heads, and trains it from the command line.

Two learned matrices mix the heads' scores before the softmax and their weights after it (Shazeer et al. 2020, arXiv
2003.02436). Both start as identity matrices, so training starts from plain attention. This example needs only the code
below; the folder is a `--t2t_usr_dir`:

    t2t-datagen --problem=algorithmic_reverse_decimal40 --data_dir=data
    t2t-trainer --t2t_usr_dir=examples/talking_heads --model=talking_heads_transformer \
      --problem=algorithmic_reverse_decimal40 --hparams_set=transformer_tiny --data_dir=data --output_dir=train \
      --train_steps=1500 --hparams=batch_size=1024,learning_rate_warmup_steps=500
    echo "3 1 4 1 5" | t2t-decoder --output_dir=train
"""

import keras
from keras import ops

from t2t_lite import registry
from t2t_lite.layers import MultiHeadAttention, masked_softmax
from t2t_lite.models import Transformer


@keras.saving.register_keras_serializable("talking_heads")
class TalkingHeadsAttention(MultiHeadAttention):
    """Multi-head attention that mixes scores and weights across heads."""

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Creates the projections and the two mixing matrices [heads, heads]."""
        super().build(query_shape, value_shape, key_shape)
        square = (self.num_heads, self.num_heads)
        self.mix_scores = self.add_weight(name="mix_scores", shape=square, initializer="identity")
        self.mix_weights = self.add_weight(name="mix_weights", shape=square, initializer="identity")

    def attend(self, query, key, value, mask, training):
        """Computes attention as the base class does, but mixes the heads before and after the softmax."""
        scores = ops.matmul(query * self.query_size**-0.5, ops.swapaxes(key, -1, -2))
        weights = masked_softmax(ops.einsum("bhts,hg->bgts", scores, self.mix_scores), mask)
        weights = ops.einsum("bhts,hg->bgts", weights, self.mix_weights)
        return ops.matmul(self.dropout(weights, training=training), value), weights


@registry.register_model
@keras.saving.register_keras_serializable("talking_heads")
class TalkingHeadsTransformer(Transformer):
    """The Transformer with talking heads in every attention."""

    def attention(self, role, index, **options):
        """Makes the attention of one layer."""
        return TalkingHeadsAttention(**options)
