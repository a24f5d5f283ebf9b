"""Hyperparameter sets; each registers itself."""
