"""The hyperparameter sets of the baselines, in a module that does not need Keras.

docs/extras/baselines.md says how tensor2tensor's sets (`neural_gpu`, `bytenet_base` and the `lstm_` sets with
attention) differ from the original.
"""

from t2t_lite.hparams.changes import changed
from t2t_lite.hparams.transformer import transformer_base
from t2t_lite.registry import register_hparams
from t2t_lite.settings.config import HParams


@register_hparams(model="neural_gpu")
def neural_gpu():
    """tensor2tensor's Neural GPU: one GRU of size 256, gradients clipped at 10."""
    return HParams().parse(
        "hidden_size=256,num_hidden_layers=1,batch_size=1024,layer_prepostprocess_dropout=0.1,label_smoothing=0,"
        "clip_grad_norm=10,optimizer_adam_beta1=0.85,optimizer_adam_beta2=0.997,optimizer_adam_epsilon=1e-6,"
        # tensor2tensor's learning_rate is 0.02; for Adam, its "legacy" schedule multiplies it by 0.002
        "learning_rate_schedule=constant*linear_warmup,learning_rate_constant=4e-5,learning_rate_warmup_steps=3000"
    )


@register_hparams(model="neural_gpu")
def neural_gpu_tiny():
    """A Neural GPU with a single GRU of size 64, for CPUs and tests."""
    return neural_gpu().parse("hidden_size=64,learning_rate_constant=2e-3,learning_rate_warmup_steps=200")


@register_hparams
def bytenet_base():
    """tensor2tensor's ByteNet set: 4 blocks of 4 convolutions of size 768 in both encoder and decoder."""
    hparams = HParams().parse(
        "hidden_size=768,num_hidden_layers=4,batch_size=2048,layer_prepostprocess_dropout=0.2,clip_grad_norm=2,"
        "optimizer_adam_beta1=0.85,optimizer_adam_beta2=0.997,optimizer_adam_epsilon=1e-6,"
        # tensor2tensor's learning_rate is 0.05; for Adam, its "legacy" schedule multiplies it by 0.002
        "learning_rate_schedule=constant*linear_warmup,learning_rate_constant=1e-4,learning_rate_warmup_steps=3000"
    )
    return changed(hparams, {"num_block_repeat": 4})


@register_hparams
def bytenet_tiny():
    """A ByteNet with two blocks of 4 convolutions of size 128, for CPUs."""
    return bytenet_base().parse(
        "hidden_size=128,num_block_repeat=2,layer_prepostprocess_dropout=0.1,"
        "learning_rate_schedule=constant*linear_warmup*rsqrt_normalized_decay,learning_rate_constant=2e-3,"
        "learning_rate_warmup_steps=200"
    )


@register_hparams(model="conv_seq2seq")
def conv_seq2seq_base():
    """The ConvS2S paper's model for WMT'16 En-Ro: 20 layers of size 512 per stack, with Adam instead of momentum."""
    return HParams().parse(
        "hidden_size=512,num_hidden_layers=20,layer_prepostprocess_dropout=0.1,clip_grad_norm=0.1,max_position=1024,"
        "learning_rate_schedule=constant*linear_warmup*rsqrt_normalized_decay,learning_rate_constant=5e-4"
    )


@register_hparams(model="conv_seq2seq")
def conv_seq2seq_tiny():
    """ConvS2S of size 128, for CPUs. Like the authors' IWSLT'14 model, it has 4 encoder and 3 decoder layers."""
    return conv_seq2seq_base().parse(
        "hidden_size=128,num_encoder_layers=4,num_decoder_layers=3,batch_size=2048,max_position=512,"
        "learning_rate_constant=2e-3,learning_rate_warmup_steps=200"
    )


@register_hparams(model="extended_neural_gpu")
def extended_neural_gpu():
    """Like `neural_gpu`, but an Extended Neural GPU with two GRUs of size 256 per step (this package's choice)."""
    return neural_gpu().parse("num_hidden_layers=2")


@register_hparams(model="extended_neural_gpu")
def extended_neural_gpu_tiny():
    """An Extended Neural GPU with two GRUs of size 64, for CPUs and tests."""
    return extended_neural_gpu().parse("hidden_size=64,learning_rate_constant=2e-3,learning_rate_warmup_steps=200")


@register_hparams
def kermit_base():
    """KERMIT with six layers of size 512, like the encoder of `transformer_base`, but without label smoothing."""
    return changed(transformer_base(), {"slot_order": "binary_tree"}, label_smoothing=0, eval_beam_size=1)


@register_hparams
def kermit_tiny():
    """KERMIT with three layers of size 128, for CPUs."""
    return kermit_base().parse(
        "hidden_size=128,filter_size=512,num_heads=4,num_hidden_layers=3,batch_size=2048,"
        "learning_rate_schedule=constant*linear_warmup*rsqrt_normalized_decay,learning_rate_constant=2e-3,"
        "learning_rate_warmup_steps=200"
    )


@register_hparams(model="lstm_lm")
def lstm_lm_base():
    """Two LSTM layers of size 512 per direction; ELMo also has two layers, but the sizes are this package's choice."""
    return HParams().parse(
        "hidden_size=512,num_hidden_layers=2,label_smoothing=0,max_length=0,clip_grad_norm=1,optimizer_adam_beta2=0.999,"
        "optimizer_adam_epsilon=1e-8,learning_rate_schedule=constant*linear_warmup*rsqrt_normalized_decay,"
        "learning_rate_constant=1e-3,learning_rate_warmup_steps=1000"
    )


@register_hparams(model="lstm_lm")
def lstm_lm_tiny():
    """A bidirectional LSTM with two layers of size 128, for CPUs and tests."""
    return lstm_lm_base().parse(
        "hidden_size=128,batch_size=2048,learning_rate_constant=3e-3,learning_rate_warmup_steps=200"
    )


@register_hparams(model="lstm_seq2seq_attention")
def lstm_attention():
    """Two LSTM layers of size 128 with additive attention; clipping and Adam as in tensor2tensor's `basic_params1`."""
    return HParams().parse(
        "hidden_size=128,num_hidden_layers=2,batch_size=1024,layer_prepostprocess_dropout=0.2,clip_grad_norm=2,"
        "optimizer_adam_beta1=0.85,optimizer_adam_beta2=0.997,optimizer_adam_epsilon=1e-6,"
        # tensor2tensor's learning_rate is 0.1; for Adam, its "legacy" schedule multiplies it by 0.002
        "learning_rate_schedule=constant*linear_warmup,learning_rate_constant=2e-4,learning_rate_warmup_steps=100"
    )


@register_hparams(model="lstm_seq2seq_attention")
def lstm_bahdanau_attention():
    """The same as `lstm_attention`, which has additive attention (Bahdanau et al. 2015)."""
    return changed(lstm_attention(), {"attention_mechanism": "bahdanau"})


@register_hparams(model="lstm_seq2seq_attention")
def lstm_luong_attention():
    """LSTMs with two layers of size 128 and multiplicative attention (Luong et al. 2015)."""
    return changed(lstm_attention(), {"attention_mechanism": "luong"})


@register_hparams(model="lstm_seq2seq_attention")
def lstm_attention_gnmt():
    """GNMT's 8 layers of size 1024, and its clipping (Wu et al. 2016, section 5). The other values are our choice."""
    return HParams().parse(
        "hidden_size=1024,num_hidden_layers=8,layer_prepostprocess_dropout=0.2,clip_grad_norm=5,"
        "learning_rate_schedule=constant*linear_warmup*rsqrt_normalized_decay,learning_rate_constant=5e-4"
    )


@register_hparams(model="lstm_seq2seq_attention")
def lstm_attention_tiny():
    """Like `lstm_attention`, but with larger batches and a higher learning rate, for CPUs."""
    return lstm_attention().parse(
        "batch_size=2048,layer_prepostprocess_dropout=0.1,optimizer_adam_beta1=0.9,optimizer_adam_beta2=0.98,"
        "learning_rate_schedule=constant*linear_warmup*rsqrt_normalized_decay,learning_rate_constant=3e-3,"
        "learning_rate_warmup_steps=200"
    )
