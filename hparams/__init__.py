"""The built-in hyperparameter sets, which register themselves when imported."""
