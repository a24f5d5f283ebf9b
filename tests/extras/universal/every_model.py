"""Rows of the table of models: the Universal Transformer."""

from tests.models.model_rows import rows_of

_ACT = {"recurrence_type": "act"}
ROWS = {
    **rows_of(
        "universal_transformer",
        {"filter_size": 24, "num_heads": 2, "norm": "pre", "num_rec_steps": 3, "act_max_steps": 3},
        {
            "": _ACT,
            "basic": {},
            "accumulated": {**_ACT, "act_type": "accumulated", "num_inrecurrence_layers": 2},
            "global": {**_ACT, "act_type": "global", "norm": "post"},
            "random": {**_ACT, "position_start_index": "random"},
            "step": {**_ACT, "position_start_index": "step", "step_timing_signal_type": "sinusoid"},
        },
        rounding=3e-6,
    ),
}  # fmt: skip
