"""Music as sequences of events from MIDI files: problems, encoders and the Music Transformer's sets.

For continuing melodies and performances (Huang et al. 2018, arXiv 1809.04281): Bach's chorales, and the user's MIDI
files. The relative attention of the Music Transformer is in the core.
"""
