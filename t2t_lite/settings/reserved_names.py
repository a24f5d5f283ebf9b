"""Keys of a model's inputs and outputs that are no features of a problem."""

BEFORE = "before"  # int [rows], in batches of segments: the id before each; 0 where a row begins
COSTS = "costs"  # of outputs: {feature: float [batch, length]}, what a model adds to its loss
SHARES = "shares"  # of outputs in training: {name: {feature: list of float [n]}}, counts whose shares the log shows
STATE = "state"  # of inputs and outputs: what a model carries from one segment of a text to the next
RESERVED = (COSTS, SHARES, STATE)  # of outputs
