"""tensor2tensor's `universal_transformer_act` (models/research/universal_transformer_util.py) in NumPy, as it loops."""

import numpy as np


def act_in_numpy(state, transform, before, gate, act_type="basic", max_steps=4, epsilon=0.01):
    """Runs steps until all positions have halted.

    Args:
        state: float32 [B, T, hidden].
        transform: function of the states, the layers of one step.
        before: function (state, step), what is added before a step.
        gate: (w [hidden], b).

    Returns:
        (output [B, T, hidden], steps [B, T], remainders [B, T], steps computed).
    """
    w, b = gate
    threshold = np.float32(1.0 - epsilon)
    shape = state.shape[:1] if act_type == "global" else state.shape[:2]
    halting_probability, remainders, n_updates = (np.zeros(shape, "float32") for _ in range(3))
    previous_state, step = np.zeros_like(state), 0
    while np.any((halting_probability < threshold) & (n_updates < max_steps)):
        state = before(state, step)
        p = (1 / (1 + np.exp(-(state @ w + b)))).astype("float32")
        p = p.mean(axis=1) if act_type == "global" else p
        still_running = (halting_probability < 1.0).astype("float32")
        new_halted = (halting_probability + p * still_running > threshold) * still_running
        still_running = (halting_probability + p * still_running <= threshold) * still_running
        halting_probability = halting_probability + p * still_running
        remainders = remainders + new_halted * (1 - halting_probability)
        halting_probability = halting_probability + new_halted * remainders
        n_updates = n_updates + still_running + new_halted
        update_weights = (p * still_running + new_halted * remainders)[..., None]
        update_weights = update_weights[..., None] if act_type == "global" else update_weights
        state = transform(state)
        if act_type == "accumulated":
            previous_state = state * update_weights + previous_state
        else:
            previous_state = state * update_weights + previous_state * (1 - update_weights)
        step += 1
    return previous_state, n_updates, remainders, step
