"""tensor2tensor's Image Transformer sets (Parmar et al. 2018), and the Sparse Transformer's set for images.

The Image Transformer sets have the values of tensor2tensor's models/image_transformer.py and image_transformer_2d.py.
Batch sizes count ids instead of images, and `learning_rate_constant` is tensor2tensor's learning rate times 10. Unlike
in tensor2tensor, positions are sinusoids along a single axis. The class of an image is its prompt. As in tensor2tensor,
all sets except the unconditional ones also add the class to each position. Not included are, among others, the sets
for TPUs and those with logistic mixtures (imagetransformerpp_), experts, dilated attention, or flanges that are not a
multiple of the block size.
"""

from t2t_lite.hparams.changes import changed
from t2t_lite.hparams.transformer_lm import transformer_lm_base, transformer_lm_tiny
from t2t_lite.registry import register_hparams
from t2t_lite.settings.config import HParams


def _images(number, height=32):
    """Returns the batch size, in ids, for a batch of square RGB images."""
    return number * 3 * height**2


def _base(**own):
    """Returns the values that all of tensor2tensor's sets share, with the model's hyperparameters `own`."""
    return changed(
        HParams(),
        {"unconditional": False, **own},
        hidden_size=512,
        filter_size=512,
        num_heads=8,
        norm_epsilon=1e-6,
        position_layout="tensor2tensor",
        initializer_gain=0.2,
        shared_embedding_and_softmax_weights=False,
        layer_prepostprocess_dropout=0.0,
        label_smoothing=0.0,
        learning_rate_constant=1.0,
    )


@register_hparams
def image_transformer_base():
    """The base set: 12 layers of size 512, with attention blocks of 256 positions."""
    return changed(_base(block_length=256), num_hidden_layers=12, batch_size=_images(4), self_attention_type="local_1d")


@register_hparams
def imagetransformer_base():
    """Another name for `image_transformer_base`."""
    return image_transformer_base()


@register_hparams
def imagetransformer_base_rel():
    """`image_transformer_base` with relative positions, which span the two visible blocks."""
    return changed(
        image_transformer_base(), self_attention_type="local_1d+dot_product_relative_v2", max_relative_position=512
    )


@register_hparams
def imagetransformer_cifar10_base():
    """4 heads, filter size 2048 and dropout 0.3; tensor2tensor reports 2.90 bits per dimension on CIFAR-10."""
    return changed(
        image_transformer_base(),
        num_heads=4,
        filter_size=2048,
        layer_prepostprocess_dropout=0.3,
        learning_rate_constant=5.0,
        unconditional=True,
    )


@register_hparams
def imagetransformer_imagenet32_base():
    """The CIFAR-10 base with dropout 0.1; tensor2tensor reports 3.77 bits per dimension on 32x32 ImageNet."""
    return changed(imagetransformer_cifar10_base(), layer_prepostprocess_dropout=0.1)


@register_hparams
def imagetransformer_sep_channels():
    """12 layers of size 256 with 4 heads. (tensor2tensor's num_decoder_layers of 12 overrides its 6 layers.)"""
    return changed(image_transformer_base(), hidden_size=256, num_heads=4)


@register_hparams
def imagetransformer_sep_channels_8l():
    """`imagetransformer_sep_channels` with filter size 256."""
    return changed(imagetransformer_sep_channels(), filter_size=256)


@register_hparams
def imagetransformer_sep_channels_8l_8h():
    """`image_transformer_base` with one image per batch."""
    return changed(image_transformer_base(), batch_size=_images(1))


@register_hparams
def imagetransformer_base_8l_8h_big_cond_dr03_dan():
    """8 layers, filter size 2048 and dropout 0.3; tensor2tensor reports 2.99 bits per dimension on CIFAR-10."""
    return changed(image_transformer_base(), num_hidden_layers=8, filter_size=2048, layer_prepostprocess_dropout=0.3)


@register_hparams
def imagetransformer_base_8l_8h_big_cond_dr03_dan_128():
    """`imagetransformer_base_8l_8h_big_cond_dr03_dan` with blocks of 128 positions."""
    return changed(imagetransformer_base_8l_8h_big_cond_dr03_dan(), block_length=128)


@register_hparams
def imagetransformer_base_10l_8h_big_cond_dr03_dan():
    """`imagetransformer_base_8l_8h_big_cond_dr03_dan` with 10 layers."""
    return changed(imagetransformer_base_8l_8h_big_cond_dr03_dan(), num_hidden_layers=10)


@register_hparams
def imagetransformer_base_10l_8h_big_uncond_dr03_dan():
    """tensor2tensor's best unconditional set for CIFAR-10: 10 layers, without classes (which tensor2tensor's adds)."""
    return changed(imagetransformer_base_10l_8h_big_cond_dr03_dan(), unconditional=True)


@register_hparams
def imagetransformer_base_10l_8h_big_uncond_dr03_dan_64():
    """The 10-layer unconditional set with one 64x64 image per batch and dropout 0.1."""
    return changed(
        imagetransformer_base_10l_8h_big_cond_dr03_dan(),
        batch_size=_images(1, 64),
        layer_prepostprocess_dropout=0.1,
        unconditional=True,
    )


@register_hparams
def imagetransformer_base_12l_8h_big():
    """`image_transformer_base` with filter size 1024 and one image per batch."""
    return changed(imagetransformer_sep_channels_8l_8h(), filter_size=1024)


@register_hparams
def imagetransformer_base_14l_8h_big():
    """`imagetransformer_base_12l_8h_big` with 14 layers."""
    return changed(imagetransformer_base_12l_8h_big(), num_hidden_layers=14)


@register_hparams
def imagetransformer_base_14l_8h_big_dr01():
    """`imagetransformer_base_14l_8h_big` with dropout 0.1."""
    return changed(imagetransformer_base_14l_8h_big(), layer_prepostprocess_dropout=0.1)


@register_hparams
def imagetransformer_bas8l_8h_big_uncond_dr03_imgnet():
    """8 layers, filter size 2048, dropout 0.3 and one image per batch."""
    return changed(
        imagetransformer_base_14l_8h_big(), num_hidden_layers=8, filter_size=2048, layer_prepostprocess_dropout=0.3
    )


@register_hparams
def imagetransformer1d_base_8l_64by64():
    """8 layers, filter size 2048, blocks of 512 positions, dropout 0.1 and one 64x64 image per batch."""
    return changed(
        image_transformer_base(),
        num_hidden_layers=8,
        filter_size=2048,
        block_length=512,
        batch_size=_images(1, 64),
        layer_prepostprocess_dropout=0.1,
    )


@register_hparams
def imagetransformer1d_base_12l_64by64():
    """`imagetransformer1d_base_8l_64by64` with 12 layers."""
    return changed(imagetransformer1d_base_8l_64by64(), num_hidden_layers=12)


@register_hparams
def imagetransformer_tiny():
    """2 layers of size 64 with one image per batch, for tests."""
    return changed(
        image_transformer_base(), num_hidden_layers=2, hidden_size=64, batch_size=_images(1), unconditional=True
    )


@register_hparams
def image_transformer2d_base():
    """8 layers of size 512. Each 16x16 block sees the blocks around it. For `image_cifar10_plain_gen_blocks`."""
    hparams = _base(block_height=16, block_width=16, image_width=96, blocks_above=1, blocks_beside=2)
    return changed(hparams, num_hidden_layers=8, batch_size=_images(1), self_attention_type="local_2d")


@register_hparams
def imagetransformer2d_base():
    """Another name for `image_transformer2d_base`."""
    return image_transformer2d_base()


@register_hparams(model="transformer_lm")
def sparse_transformer_cifar10():
    """The Sparse Transformer for CIFAR-10 (Child et al. 2019, section 7.1): 128 layers, 2.80 bits per dimension."""
    return changed(
        transformer_lm_base(),
        {"attention_stride": 128},
        num_hidden_layers=128,
        hidden_size=256,
        filter_size=512,
        num_heads=2,
        attention_key_channels=128,
        self_attention_type="strided",
        pos="emb",
        max_position=4096,
        batch_size=_images(4),
        layer_prepostprocess_dropout=0.25,
        optimizer="adam_w",
        weight_decay=0.01,
        learning_rate_schedule="constant*linear_warmup*single_cycle_cos_decay",
        learning_rate_constant=3.5e-4,
        learning_rate_warmup_steps=5000,
        recompute_grad=True,
    )


@register_hparams(model="transformer_lm")
def image_transformer_small():
    """4 layers of size 128, whose attention sees 4 to 8 rows of an MNIST image (112 to 224 pixels); 5 images per batch.

    The set has the relative positions of Huang et al. (2018). Without them, the model learned streaks instead of
    digits.
    """
    return changed(
        transformer_lm_tiny(),
        {"block_length": 112, "unconditional": False},
        learning_rate_schedule="constant*linear_warmup*single_cycle_cos_decay",
        learning_rate_constant=0.002,
        learning_rate_warmup_steps=200,
        batch_size=4096,
        self_attention_type="local_1d+dot_product_relative_v2",
        max_relative_position=224,
    )
