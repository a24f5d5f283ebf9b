"""Describes, for `permutation_lm_own`, the settings that it shares with other problems on the user's own files."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(train_files="permutation_lm_own: texts.", sequence_length="permutation_lm_own: 511.")
