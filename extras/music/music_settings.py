"""What the settings of problems on the user's own files are for `music_own`."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(train_files="music_own: MIDI, or folders of it.", sequence_length="music_own: 1024.")
