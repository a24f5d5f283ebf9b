"""Music as event sequences from MIDI files: problems, encoders and the Music Transformer's hparams sets.

For models that continue melodies and performances (Huang et al. 2018, arXiv 1809.04281), trained on Bach's chorales or
the user's MIDI files. The Music Transformer's relative attention is part of the core.
"""
