"""Vocabularies of translators in Hugging Face's folders."""

import pytest

from tests.extras.hugging_face.folders import two_vocabularies


@pytest.fixture(scope="session")
def encoders(tmp_path_factory):
    """Two SentencePiece vocabularies."""
    return two_vocabularies(tmp_path_factory)
