"""Searches for hyperparameters: `t2t-trainer --hparams_range=NAME` trains runs whose values Optuna chooses.

Trials are ordinary runs, several of which may train at the same time. Bad trials are pruned by comparison with the
median of the other trials (Golovin et al. 2017, "Google Vizier"), and the winner is trained again with other seeds.
tensor2tensor offered this only in Google's cloud; its ranges (`RangedHParams` of layers/common_hparams.py) are
registered here. Uses t2t_lite.extras.seeds.
Needs: pip install 't2t_lite[tune]'.
"""
