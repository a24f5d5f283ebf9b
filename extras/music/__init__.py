"""Music as rows of ids, events of MIDI files: problems, encoders and the Music Transformer's sets.

For who continues melodies and performances (Huang et al. 2018, arXiv 1809.04281): chorales, performances, and MIDI
files of one's own. Its relative attention is the core's.
"""
