"""Describes the settings of problems on the user's own files for `permutation_lm_own`."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(train_files="permutation_lm_own: texts.", sequence_length="permutation_lm_own: 511.")
