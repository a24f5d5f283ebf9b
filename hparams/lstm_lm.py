"""Sets of language models of LSTMs in both directions; their sizes are this package's own, not ELMo's."""

from t2t_lite.config import HParams
from t2t_lite.registry import register_hparams


@register_hparams
def lstm_lm_base():
    """Two layers of 512 per direction, as many layers as ELMo has."""
    return HParams().override_from_dict(
        {
            "hidden_size": 512,
            "num_hidden_layers": 2,
            "label_smoothing": 0.0,
            "max_length": 0,
            "optimizer_adam_beta2": 0.999,
            "optimizer_adam_epsilon": 1e-8,
            "learning_rate_schedule": "constant*linear_warmup*rsqrt_normalized_decay",
            "learning_rate_constant": 1e-3,
            "learning_rate_warmup_steps": 1000,
            "clip_grad_norm": 1.0,
        }
    )


@register_hparams
def lstm_lm_tiny():
    """Two layers of 128, for CPUs and tests."""
    changes = {
        "hidden_size": 128,
        "batch_size": 2048,
        "learning_rate_constant": 3e-3,
        "learning_rate_warmup_steps": 200,
    }
    return lstm_lm_base().override_from_dict(changes)
