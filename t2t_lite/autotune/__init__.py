"""Searches for hyperparameters: trials that are ordinary runs, chosen by Optuna (`t2t-trainer --hparams_range`)."""
