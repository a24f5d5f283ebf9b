"""Searches for hyperparameters: `t2t-trainer --hparams_range=NAME` trains runs whose hyperparameters Optuna chooses.

Trials are ordinary runs, several of which may train at the same time. A trial that does worse than the median of the
other trials is stopped early (Golovin et al. 2017, "Google Vizier"), and the best trial is trained again with other
seeds. tensor2tensor offered this only in Google's cloud; its ranges (`RangedHParams` of layers/common_hparams.py) are
registered here. Uses t2t_lite.extras.seeds.
Needs: pip install 't2t_lite[tune]'.
"""
