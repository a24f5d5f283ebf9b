"""Help texts of `image_own` for the settings that all problems on the user's own files share."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(train_files="image_own: PNGs, or folders of them.")
