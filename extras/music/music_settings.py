"""Describes the settings of problems on the user's own files for `music_own`."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(train_files="music_own: MIDI files, or folders of them.", sequence_length="music_own: 1024.")
