"""Transformer-XL: a language model that sees the hidden states of the segment before, and what carries such states.

For who models long texts (Dai et al. 2019, arXiv 1901.02860): the model transformer_memory, its relative attention,
data in segments, and the state that a run keeps from step to step. A model of your own with an `initial_state` needs
it.
"""
