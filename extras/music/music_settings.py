"""`music_own`'s descriptions of the settings that it shares with other problems that read the user's own files."""

from t2t_lite.problems.own_settings import explain_settings

explain_settings(
    train_files="music_own: MIDI files, or folders of them.", sequence_length="Default for music_own: 1024."
)
