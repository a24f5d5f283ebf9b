"""Explains the settings of problems on the user's own files for `image_own`."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(train_files="image_own: PNGs, or folders of them.")
