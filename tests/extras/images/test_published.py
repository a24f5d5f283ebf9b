"""The sets have the published values, the classes the published names."""

# Nearest tests of: extras/images/hparams_image_transformer.py, extras/images/images.py

from tests.hparams.published import classes_are_as_published, each_set_is_as_published

test_each_set_is_as_published = each_set_is_as_published(__file__)
test_classes_are_as_published = classes_are_as_published(__file__)
