"""t2t-trainer --describe prints a model's layers and parameters, and estimates the FLOPs and memory of its training.

For planning a training run without data or a GPU. The command also prints the paper's own estimate of FLOPs (section
6.1, table 2), the largest batch that fits on a GPU, and the possible export formats. With --plot, it draws the learning
rate.
"""
