"""The sets of all extras have the published values, their classes the published names."""

# Nearest tests of: extras/baselines/hparams_baselines.py, extras/experts/hparams_transformer_moe.py
# Nearest tests of: extras/glue/published_labels.py, extras/images/hparams_image_transformer.py, extras/images/images.py
# Nearest tests of: extras/memory/hparams_transformer_memory.py, extras/music/hparams_music_transformer.py
# Nearest tests of: extras/sparse/hparams_sparse_transformer.py
# Nearest tests of: extras/universal/hparams_universal_transformer.py, extras/xlnet/hparams_xlnet.py

from tests.hparams.published import classes_are_as_published, each_set_is_as_published

test_each_set_is_as_published = each_set_is_as_published(__file__)
test_classes_are_as_published = classes_are_as_published(__file__)
