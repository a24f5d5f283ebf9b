"""Searches for hyperparameters: `t2t-trainer --hparams_range=NAME` trains runs whose values Optuna chooses.

For who has more machines than patience; tensor2tensor had it in Google's cloud alone. Trials are ordinary runs, pruned
by the median of the others (Golovin et al. 2017, "Google Vizier"), also side by side; the winner is trained again with
other seeds. It registers `RangedHParams`, as tensor2tensor's utils/rangedhparams.py has them.
Needs: pip install 't2t_lite[tune]'.
"""
