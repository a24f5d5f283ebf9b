"""Keys of a model's inputs and outputs that are not features of a problem."""

BEFORE = "before"  # input, int [rows]: the id before each segment; 0 at the beginning of a row
COSTS = "costs"  # output, {feature: float [batch, length]}: costs that a model adds to its loss
SHARES = "shares"  # output in training, {name: {feature: list of float [n]}}: counts, logged as shares of their sum
STATE = "state"  # input and output: the state that a model passes from one segment of a text to the next
RESERVED = (COSTS, SHARES, STATE)  # reserved in outputs
