"""The hyperparameters that models share, each with its type, default, range and meaning."""

import dataclasses

from t2t_lite.settings.ranges import ALPHA, BEAM_SIZE, COUNT, LOSS_SCALE, SEED, setting
from t2t_lite.settings.search_options import SearchOptions


@dataclasses.dataclass(eq=False)
class DeclaredHParams:
    """The hyperparameters. The defaults are the paper's base model."""

    # Sizes (paper, table 3).
    hidden_size: int = setting(
        512, 1, 2**16, argument="hidden_size", fixed=True, meaning="d_model, size of the layers' inputs and outputs."
    )
    filter_size: int = setting(
        2048, 1, 2**18, argument="filter_size", fixed=True, meaning="d_ff, the inner size of the feed-forward networks."
    )
    num_heads: int = setting(
        8, 1, 2**12, argument="num_heads", fixed=True, meaning="h, the number of heads of each attention layer."
    )
    num_hidden_layers: int = setting(
        6, 0, 2**9, argument="num_layers", fixed=True,
        meaning="N, the number of layers of each stack (encoder and decoder).",
    )  # fmt: skip
    num_encoder_layers: int = setting(
        0, 0, 2**9, argument="num_encoder_layers", zero="num_hidden_layers", fixed=True,
        meaning="Number of layers of the encoder; 0: num_hidden_layers.",
    )  # fmt: skip
    num_decoder_layers: int = setting(
        0, 0, 2**9, argument="num_decoder_layers", zero="num_hidden_layers", fixed=True,
        meaning="Number of layers of the decoder; 0: num_hidden_layers.",
    )  # fmt: skip
    attention_key_channels: int = setting(
        0, 0, 2**18, argument="key_dim", zero="none", per="num_heads", fixed=True,
        meaning="d_k, total size of the queries and keys of all heads; 0: hidden_size.",
    )  # fmt: skip
    attention_value_channels: int = setting(
        0, 0, 2**18, argument="value_dim", zero="none", per="num_heads", fixed=True,
        meaning="d_v, total size of the values of all heads; 0: hidden_size.",
    )  # fmt: skip

    # Structure. "none" + "dan" is post-norm, as in the paper; "n" + "da" is pre-norm.
    layer_preprocess_sequence: str = setting(
        "none", choices={"none": "post", "n": "pre"}, argument="norm", fixed=True,
        meaning="What precedes each sub-layer: nothing (as in the paper) or a normalization (n).",
    )  # fmt: skip
    layer_postprocess_sequence: str = setting(
        "dan", choices={"dan": "post", "da": "pre"}, argument="norm", fixed=True,
        meaning="What follows each sub-layer: dropout (d), residual addition (a) and, in the paper, normalization (n).",
    )  # fmt: skip
    norm_epsilon: float = setting(
        1e-5, 1e-20, 1, argument="norm_epsilon", fixed=True, meaning="Number added to the variance in normalizations."
    )
    attention_bias: bool = setting(
        False, argument="attention_bias", fixed=True, meaning="Whether attention's projections have biases."
    )
    ffn_activation: str = setting(
        "relu", argument="activation", fixed=True,
        meaning="Feed-forward activation: relu, gelu, gelu_tanh, swish, swiglu or any other Keras activation.",
    )  # fmt: skip
    shared_embedding_and_softmax_weights: bool = setting(
        True, argument="tie_embeddings", fixed=True, meaning="Whether embeddings and softmax share one matrix."
    )
    embedding_size: int = setting(
        0, 0, 2**16, argument="embedding_size", zero="none", fixed=True,
        meaning="Size of the embeddings before their projection to hidden_size; 0: hidden_size, without a projection.",
    )  # fmt: skip
    multiply_embedding_mode: str = setting(
        "sqrt_depth", choices={"sqrt_depth": True, "none": False}, argument="scale_embeddings", fixed=True,
        meaning="Whether embeddings are multiplied by the square root of hidden_size.",
    )  # fmt: skip
    softmax_bias: bool = setting(False, argument="softmax_bias", fixed=True, meaning="Whether logits have a bias.")
    use_target_space_embedding: bool = setting(
        False, argument="target_space_embedding", fixed=True,
        meaning="Whether one learned vector is added to all encoder inputs, as in tensor2tensor's models.",
    )  # fmt: skip
    pos: str = setting(
        "timing", choices={"timing": "sinusoidal", "emb": "learned", "rotary": "rotary", "none": "none"},
        argument="position", fixed=True, meaning="Positions: sinusoids (timing), a table (emb), rotary or none.",
    )  # fmt: skip
    position_layout: str = setting(
        "interleaved", choices=("interleaved", "marian", "tensor2tensor"), argument="position_layout", fixed=True,
        meaning="Order and frequencies of the sinusoids; the paper uses interleaved.",
    )  # fmt: skip
    max_position: int = setting(
        1024, 1, 2**20, argument="max_position", fixed=True, meaning="Number of rows in the table of learned positions."
    )
    self_attention_type: str = setting(
        "dot_product", argument="self_attention", fixed=True,
        meaning="Kind of self-attention. Scores: dot_product (the paper), dot_product_relative (Shaw et al. 2018), "
        "dot_product_relative_v2 (Music Transformer) or dot_product_relative_memory (Transformer-XL). Patterns: "
        "restricted (the paper, section 4), local_1d, local_2d, strided or fixed. a+b combines a score with a pattern; "
        "a:b gives pattern a to the first half of the heads and pattern b to the second half; a/b alternates kinds "
        "from layer to layer.",
    )  # fmt: skip
    max_relative_position: int = setting(
        0, 0, 2**16, argument="self_attention.max_relative_position", fixed=True,
        meaning="For dot_product_relative: largest distance that has its own vector. For v2: number of distances "
            "that have a vector.",
    )  # fmt: skip
    add_relative_to_values: bool = setting(
        False, argument="self_attention.add_relative_to_values", fixed=True,
        meaning="For dot_product_relative and v2: whether vectors for distances are also added to the values.",
    )  # fmt: skip
    heads_share_relative_embedding: bool = setting(
        False, argument="self_attention.heads_share_relative_embedding", fixed=True,
        meaning="For dot_product_relative_v2: whether all heads share the vectors for distances.",
    )  # fmt: skip
    attention_neighborhood: int = setting(
        0, 0, 2**20, argument="self_attention.neighborhood", fixed=True,
        meaning="For restricted: r, the number of positions that each position attends to.",
    )  # fmt: skip
    ffn_layer: str = setting(
        "dense_relu_dense", argument="feed_forward", fixed=True,
        meaning="Kind of feed-forward network: dense_relu_dense (the paper) or local_moe (a mixture of experts); a/b "
        "alternates kinds from layer to layer.",
    )  # fmt: skip
    initializer: str = setting(
        "uniform_unit_scaling", argument="initializer",
        meaning="Initial values of the layers' matrices: see Initialization below.",
    )  # fmt: skip
    initializer_gain: float = setting(
        1.0, above=0, most=100, argument="initializer_gain", meaning="Gain of the initializer."
    )

    # Regularisation.
    layer_prepostprocess_dropout: float = setting(
        0.1, 0, below=1, argument="dropout", meaning="Dropout rate of sub-layers' outputs and of embeddings."
    )
    attention_dropout: float = setting(
        0.0, 0, below=1, argument="attention_dropout", meaning="Dropout rate of attention weights."
    )
    relu_dropout: float = setting(
        0.0, 0, below=1, argument="relu_dropout", meaning="Dropout rate inside the feed-forward networks."
    )
    label_smoothing: float = setting(
        0.1, 0, below=1, meaning="Label smoothing: the total probability that is spread over all wrong ids."
    )

    # Batches.
    batch_size: int = setting(
        4096, 1, 2**24,
        meaning="Maximum number of tokens in a batch of one replica: rows x length of the longest row on either side.",
    )  # fmt: skip
    max_length: int = setting(
        256, 0, 2**24, meaning="Maximum length of a training example; longer examples are dropped; 0: batch_size."
    )
    min_length: int = setting(
        0, 0, 2**24, meaning="Minimum length of a training example; shorter examples are dropped."
    )
    bpe_dropout: float = setting(
        0.0, 0, 1,
        meaning="BPE dropout: probability of skipping a merge in training, on both sides (text/bpe_dropout.py).",
    )  # fmt: skip
    gradient_accumulation_steps: int = setting(1, 1, 256, meaning="Number of batches per step on each replica.")

    # Optimizer (paper, 5.3).
    optimizer: str = setting(
        "adam", choices=("adam", "true_adam", "adam_w", "lamb", "adafactor", "sgd", "multistep_adam"), fixed=True,
        meaning="The optimizer. true_adam and adam_w are other names for adam; multistep_adam is adam with accumulated "
            "gradients.",
    )  # fmt: skip
    optimizer_adam_beta1: float = setting(0.9, 0, below=1, meaning="For Adam: decay of the first moment.")
    optimizer_adam_beta2: float = setting(0.98, 0, below=1, meaning="For Adam: decay of the second moment.")
    optimizer_adam_epsilon: float = setting(
        1e-9, 1e-20, 1, meaning="For Adam: number added to the square root of the second moment."
    )
    optimizer_adafactor_beta1: float = setting(
        0.0, 0, below=1, fixed=True, meaning="For Adafactor: decay of the first moment; 0: no first moment."
    )
    optimizer_adafactor_beta2: float = setting(
        0.999, above=0, below=1, meaning="For Adafactor with decay type adam: decay of the second moment."
    )
    optimizer_adafactor_factored: bool = setting(
        True, fixed=True, meaning="For Adafactor: whether only row and column means of second moments are stored."
    )
    optimizer_adafactor_decay_type: str = setting(
        "pow", choices=("pow", "adam"), meaning="For Adafactor: type of the second moment's decay."
    )
    optimizer_adafactor_memory_exponent: float = setting(
        0.8, above=0, most=10, meaning="For Adafactor with decay type pow: exponent of the decay."
    )
    optimizer_adafactor_clipping_threshold: float = setting(
        1.0, 0, 10**6, meaning="For Adafactor: root mean square above which an update is clipped; 0: never."
    )
    optimizer_adafactor_multiply_by_parameter_scale: bool = setting(
        True, meaning="For Adafactor: whether an update is scaled by the size of its weights."
    )
    optimizer_multistep_accumulate_steps: int = setting(
        0, 0, 256, meaning="For multistep_adam: another name for gradient_accumulation_steps."
    )
    weight_decay: float = setting(
        0.0, 0, 1,
        meaning="Weight decay: fraction of each matrix, times the learning rate, that a step subtracts; 0: off.",
    )  # fmt: skip
    ema_decay: float = setting(
        0.0, 0, below=1, fixed=True,
        meaning="Decay of a moving average of the weights; the average is evaluated and saved; 0: off.",
    )  # fmt: skip
    learning_rate_schedule: str = setting(
        "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
        meaning="Schedule of the learning rate, a product of factors: see training/optimization/schedules.py.",
    )
    learning_rate_constant: float = setting(1.0, 0, 10**6, meaning="Value of the schedule's factor named constant.")
    learning_rate_warmup_steps: int = setting(4000, limits=COUNT, meaning="Number of warm-up steps.")
    learning_rate_decay_steps: int = setting(
        5000, 1, 2**31 - 1, meaning="Number of steps over which the schedule's factors decay."
    )
    learning_rate_decay_rate: float = setting(1.0, above=0, most=10, meaning="Factor of exponential decay.")
    learning_rate_decay_staircase: bool = setting(
        False, meaning="Whether exponential decay is applied in discrete steps."
    )
    learning_rate_layer_decay: float = setting(
        1.0, above=0, most=1,
        meaning="Layer-wise decay: each layer's learning rate is this factor times the rate of the layer above, "
        "down to the embeddings; 1: off.",
    )  # fmt: skip
    unfreeze_steps: int = setting(
        0, limits=COUNT,
        meaning="Gradual unfreezing: number of steps after which the next layer is also trained, from the top down to "
            "the embeddings; 0: train all layers from the start.",
    )  # fmt: skip
    frozen: str = setting(
        "", fixed=True, meaning="Parts of the model that are not trained, such as embedding/encoder_0-3."
    )
    lora_rank: int = setting(
        0, 0, 2**12, fixed=True, meaning="LoRA rank; if set, only the LoRA weights and the heads are trained; 0: off."
    )
    lora_alpha: float = setting(
        0.0, 0, 10**6, fixed=True, meaning="The LoRA update is scaled by lora_alpha / lora_rank; 0: no scaling."
    )
    lora_targets: str = setting(
        "", fixed=True,
        meaning="Kernels with LoRA: query, key, value, output, filter, or several, such as query/value; empty: all.",
    )  # fmt: skip
    clip_grad_norm: float = setting(0.0, 0, 10**9, meaning="Global norm to which gradients are clipped; 0: off.")
    max_skipped_steps: int = setting(
        10, limits=COUNT, meaning="Training stops after this many consecutive steps with a non-finite loss or gradient."
    )

    # The machine.
    dtype_policy: str = setting(
        "float32", choices=("float32", "mixed_bfloat16", "bfloat16", "mixed_float16", "float16", "float64"),
        argument="dtype", meaning="The dtypes of computations and weights.",
    )  # fmt: skip
    mixed_precision_optimizer_init_loss_scale: float = setting(
        2.0**15, limits=LOSS_SCALE, meaning="For float16: initial scale of the loss."
    )
    loss_scale_growth_steps: int = setting(
        2000, 1, 2**31 - 1, meaning="For float16: the loss scale doubles after this many steps with finite gradients."
    )
    recompute_grad: bool = setting(
        False, argument="recompute_grad",
        meaning="Whether activations inside the layers are recomputed in the backward pass, to save memory.",
    )  # fmt: skip
    random_seed: int = setting(
        429459, limits=SEED, meaning="Seed for the initial weights, the order of the data, and dropout."
    )

    # Evaluation during training.
    eval_metrics: str = setting(
        "", meaning="Metrics in addition to the problem's own, separated by /, such as f1_macro/mcc or ter."
    )
    eval_decode_examples: int = setting(
        200, limits=COUNT, meaning="Number of dev sentences to translate in each evaluation; 0: none."
    )
    eval_beam_size: int = setting(SearchOptions.beam_size, limits=BEAM_SIZE, meaning="Beam size in evaluations.")
    eval_alpha: float = setting(SearchOptions.alpha, limits=ALPHA, meaning="Length penalty in evaluations.")
    eval_tokenization: str = setting(
        "",
        meaning="Tokenization for BLEU, such as zh or char; empty: depends on the target language (13a for "
        "languages with spaces).",
    )
