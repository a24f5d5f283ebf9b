"""The classes have the published names."""

# Nearest tests of: extras/glue/published_labels.py

from tests.hparams.published import classes_are_as_published

test_classes_are_as_published = classes_are_as_published(__file__)
