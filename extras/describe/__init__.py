"""What a model is made of and what training it costs, without data or a GPU: `t2t-trainer --describe`.

For choosing sizes: layers, parameters, operations and memory of a step, the largest batch of a GPU, and the paper's own
estimate beside it (Vaswani et al. 2017, section 6.1). Models and layers may count for themselves, by `flops` and
`activations`. No pip extra.
"""
