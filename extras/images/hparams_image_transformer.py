"""tensor2tensor's Image Transformers (Parmar et al. 2018), by its names, and Sparse Transformer's of images.

The former have the values of its models/image_transformer.py and image_transformer_2d.py: sets there count images in a
batch, here ids, and their learning rate is the constant here divided by 10. One thing differs: positions are sinusoids
of one axis. Classes are prompts, which all but unconditional sets also add to all inputs, as there. Left out are the
sets with logistic mixtures (imagetransformerpp_), with experts, with dilated attention, with flanges that are no whole
blocks, and for TPUs.
"""

from t2t_lite.hparams.transformer_lm import transformer_lm_base
from t2t_lite.registry import register_hparams
from t2t_lite.settings.config import HParams


def _changed(hparams, **changes):
    return hparams.override_from_dict(changes)


def _images(number, height=32):
    """Returns the batch size of so many RGB images."""
    return number * 3 * height**2


def _base(**changes):
    """Returns what all of tensor2tensor's share, with changes; names that are not in `HParams` are added."""
    hparams = _changed(
        HParams(),
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
    hparams.add_hparam("unconditional", False)
    hparams = _changed(hparams, **{name: changes.pop(name) for name in [*changes] if name in hparams})
    for name, value in changes.items():
        hparams.add_hparam(name, value)
    return hparams


@register_hparams
def image_transformer_base():
    """tensor2tensor's base: 12 layers of 512, blocks of 256."""
    return _base(num_hidden_layers=12, batch_size=_images(4), self_attention_type="local_1d", block_length=256)


@register_hparams
def imagetransformer_base():
    """tensor2tensor's other name of `image_transformer_base`."""
    return image_transformer_base()


@register_hparams
def imagetransformer_base_rel():
    """The base with relative positions, those of the two blocks that are seen."""
    return _changed(
        image_transformer_base(),
        self_attention_type="local_1d+dot_product_relative_v2",
        max_relative_position=512,
    )


@register_hparams
def imagetransformer_cifar10_base():
    """4 heads, a filter of 2048, dropout 0.3: there 2.90 bits per dimension of CIFAR-10."""
    return _changed(
        image_transformer_base(),
        num_heads=4,
        filter_size=2048,
        layer_prepostprocess_dropout=0.3,
        learning_rate_constant=5.0,
        unconditional=True,
    )


@register_hparams
def imagetransformer_imagenet32_base():
    """The same with dropout 0.1: there 3.77 bits per dimension of ImageNet in 32x32."""
    return _changed(imagetransformer_cifar10_base(), layer_prepostprocess_dropout=0.1)


@register_hparams
def imagetransformer_sep_channels():
    """12 layers of 256, 4 heads. (There num_hidden_layers is 6, but num_decoder_layers, 12, counts.)"""
    return _changed(image_transformer_base(), hidden_size=256, num_heads=4)


@register_hparams
def imagetransformer_sep_channels_8l():
    """12 layers of 256, as those before, with a filter of 256."""
    return _changed(imagetransformer_sep_channels(), filter_size=256)


@register_hparams
def imagetransformer_sep_channels_8l_8h():
    """The base, an image to a batch."""
    return _changed(image_transformer_base(), batch_size=_images(1))


@register_hparams
def imagetransformer_base_8l_8h_big_cond_dr03_dan():
    """8 layers of 512 with a filter of 2048, dropout 0.3: there 2.99 bits per dimension of CIFAR-10."""
    return _changed(image_transformer_base(), num_hidden_layers=8, filter_size=2048, layer_prepostprocess_dropout=0.3)


@register_hparams
def imagetransformer_base_8l_8h_big_cond_dr03_dan_128():
    """The same with blocks of 128."""
    return _changed(imagetransformer_base_8l_8h_big_cond_dr03_dan(), block_length=128)


@register_hparams
def imagetransformer_base_10l_8h_big_cond_dr03_dan():
    """10 layers."""
    return _changed(imagetransformer_base_8l_8h_big_cond_dr03_dan(), num_hidden_layers=10)


@register_hparams
def imagetransformer_base_10l_8h_big_uncond_dr03_dan():
    """The same without classes: tensor2tensor's best of CIFAR-10 without them."""
    return _changed(imagetransformer_base_10l_8h_big_cond_dr03_dan(), unconditional=True)


@register_hparams
def imagetransformer_base_10l_8h_big_uncond_dr03_dan_64():
    """The same for an image of 64x64 to a batch, dropout 0.1."""
    return _changed(
        imagetransformer_base_10l_8h_big_cond_dr03_dan(),
        batch_size=_images(1, 64),
        layer_prepostprocess_dropout=0.1,
        unconditional=True,
    )


@register_hparams
def imagetransformer_base_12l_8h_big():
    """The base with a filter of 1024, an image to a batch."""
    return _changed(imagetransformer_sep_channels_8l_8h(), filter_size=1024)


@register_hparams
def imagetransformer_base_14l_8h_big():
    """14 layers."""
    return _changed(imagetransformer_base_12l_8h_big(), num_hidden_layers=14)


@register_hparams
def imagetransformer_base_14l_8h_big_dr01():
    """The same with dropout 0.1."""
    return _changed(imagetransformer_base_14l_8h_big(), layer_prepostprocess_dropout=0.1)


@register_hparams
def imagetransformer_bas8l_8h_big_uncond_dr03_imgnet():
    """8 layers with a filter of 2048, dropout 0.3, an image to a batch."""
    return _changed(
        imagetransformer_base_14l_8h_big(), num_hidden_layers=8, filter_size=2048, layer_prepostprocess_dropout=0.3
    )


@register_hparams
def imagetransformer1d_base_8l_64by64():
    """8 layers with a filter of 2048 and blocks of 512, an image of 64x64 to a batch."""
    return _changed(
        image_transformer_base(),
        num_hidden_layers=8,
        filter_size=2048,
        block_length=512,
        batch_size=_images(1, 64),
        layer_prepostprocess_dropout=0.1,
    )


@register_hparams
def imagetransformer1d_base_12l_64by64():
    """12 layers."""
    return _changed(imagetransformer1d_base_8l_64by64(), num_hidden_layers=12)


@register_hparams
def imagetransformer_tiny():
    """2 layers of 64, for tests; an image to a batch."""
    return _changed(
        image_transformer_base(), num_hidden_layers=2, hidden_size=64, batch_size=_images(1), unconditional=True
    )


@register_hparams
def image_transformer2d_base():
    """8 layers of 512, blocks of 16x16 that see those around them, for `image_cifar10_plain_gen_blocks`."""
    return _base(
        num_hidden_layers=8,
        batch_size=_images(1),
        self_attention_type="local_2d",
        block_height=16,
        block_width=16,
        image_width=96,
        blocks_above=1,
        blocks_beside=2,
    )


@register_hparams
def imagetransformer2d_base():
    """tensor2tensor's other name of `image_transformer2d_base`."""
    return image_transformer2d_base()


@register_hparams(model="transformer_lm")
def sparse_transformer_cifar10():
    """Sparse Transformer's of CIFAR-10 (Child et al. 2019, section 7.1): 128 layers of 256, 2.80 bits per dimension."""
    hparams = _changed(
        transformer_lm_base(),
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
    hparams.add_hparam("attention_stride", 128)
    return hparams


@register_hparams(model="transformer_lm")
def image_transformer_small():
    """4 layers of 128 that see 112 to 224 pixels, 4 to 8 rows of MNIST's; 5 of its images to a batch.

    It has Huang et al.'s relative positions: without them the blocks learned streaks, no digits.
    """
    hparams = transformer_lm_base().override_from_dict(
        {
            "num_hidden_layers": 4,
            "hidden_size": 128,
            "filter_size": 512,
            "num_heads": 4,
            "learning_rate_schedule": "constant*linear_warmup*single_cycle_cos_decay",
            "learning_rate_constant": 0.002,
            "learning_rate_warmup_steps": 200,
            "batch_size": 4096,
            "self_attention_type": "local_1d+dot_product_relative_v2",
            "max_relative_position": 224,
            "layer_prepostprocess_dropout": 0.0,
        }
    )
    hparams.add_hparam("block_length", 112)
    hparams.add_hparam("unconditional", False)
    return hparams
