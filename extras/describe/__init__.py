"""t2t-trainer --describe: the layers and parameters of a model, and the operations and memory of its training.

For planning a training without data or GPU: FLOPs as the paper counts them (section 6.1, table 2), the largest batch
that fits a GPU, the formats that the model can be exported to, and a picture of its learning rate.
"""
