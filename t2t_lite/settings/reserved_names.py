"""Reserved keys in a model's inputs and outputs, which are not features of a problem."""

BEFORE = "before"  # input, int [rows]: the id that precedes each segment, or 0 at the beginning of a row
COSTS = "costs"  # output, {feature: float [batch, length]}: costs that the model adds to its loss
SHARES = "shares"  # training output, {name: {feature: list of float [n]}}: counts, logged as shares of their sum
STATE = "state"  # input and output: the state that the model passes from one segment of a text to the next
RESERVED = (COSTS, SHARES, STATE)  # all keys that are reserved in outputs
