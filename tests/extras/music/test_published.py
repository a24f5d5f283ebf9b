"""The sets have the published values."""

# Nearest tests of: extras/music/hparams_music_transformer.py

from tests.hparams.published import each_set_is_as_published

test_each_set_is_as_published = each_set_is_as_published(__file__)
