"""Transformer-XL: a language model that attends to the hidden states of the previous segment.

For long texts (Dai et al. 2019, arXiv 1901.02860). Contains the model transformer_memory with its relative attention.
Also contains what its training needs: batches of segments, and a state that is carried from step to step. User-defined
models that have an `initial_state` also need this extra.
"""
