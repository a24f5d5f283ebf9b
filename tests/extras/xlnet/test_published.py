"""The sets have the published values."""

# Nearest tests of: extras/xlnet/hparams_xlnet.py

from tests.hparams.published import each_set_is_as_published

test_each_set_is_as_published = each_set_is_as_published(__file__)
