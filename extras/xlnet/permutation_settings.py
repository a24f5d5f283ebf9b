"""`permutation_lm_own`'s descriptions of the settings shared with other problems that read the user's own files."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(train_files="permutation_lm_own: texts.", sequence_length="Default for permutation_lm_own: 511.")
