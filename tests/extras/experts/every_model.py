"""Rows of the table of models: mixtures of experts."""

from tests.models.model_rows import TRANSFORMER, rows_of

_EXPERTS = {"type": "local_moe", "num_experts": 4, "k": 2, "loss_coef": 0.1}
ROWS = {
    **rows_of("transformer_moe", {**TRANSFORMER, "num_heads": 2, "num_encoder_layers": 2, "num_decoder_layers": 2}, {
        "": {"feed_forward": ["dense_relu_dense", _EXPERTS]},
    }, rounding=4e-6),
}  # fmt: skip
