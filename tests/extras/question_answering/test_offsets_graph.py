"""The spans of pieces that a graph finds are those that Python finds, for every kind of vocabulary."""

import functools
import unicodedata

import pytest
import tensorflow as tf

from t2t_lite.extras.question_answering.offsets_graph import encode_with_offsets as encode_in_graph
from t2t_lite.text.offsets import encode_with_offsets
from t2t_lite.text.stray_characters import INVISIBLE
from t2t_lite.text.vocabulary_files import open_encoder
from tests.text.added_tokens import TEXTS, vocabulary
from tests.text.kinds import KINDS, SENTENCES
from tests.text.published_samples import texts, write_byte_level, write_pieces


@pytest.fixture(scope="module", params=KINDS)
def encoder(request, tmp_path_factory):
    return KINDS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.mark.slow
def test_the_graph_gives_the_same(encoder):
    """For many texts at once, so that nothing depends on neighbours."""
    spec = tf.TensorSpec([None], tf.string)
    graph = tf.function(functools.partial(encode_in_graph, encoder), input_signature=[spec], autograph=False)
    some = [
        *texts(500), *SENTENCES, "", " \n ", "ﬁne ＡＢＣ e\u0301e\u0301 ½", "a\x00\u200b b\u0301\x1c", "the" * 300, ""
    ]  # fmt: skip
    if encoder.encode("a\u200b") == encoder.encode("a"):  # nor that what is left out follows one that bytes spell
        some = [text for text in some if not {*text} & {*map(chr, INVISIBLE)}] + ["the\u200b ca\u00adt"]
        assert len(some) > 300
    if encoder.encode("ﬁ") == encoder.encode("fi"):  # which parts of a character pieces have is not known in a graph
        some = [text for text in some if unicodedata.is_normalized("NFKC", text)]
        assert len(some) > 200
    ids, starts, ends = graph(tf.constant(some))
    found = ids.with_values(tf.stack([starts, ends], 1))
    for text, row, spans in zip(some, ids.to_list(), found.to_list(), strict=True):
        assert (row, [*map(tuple, spans)]) == encode_with_offsets(encoder, text), text
    assert graph(tf.constant([], tf.string))[0].to_list() == []


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_pieces, write_byte_level])
def test_added_tokens_have_the_same_spans(tmp_path, write):
    encoder = open_encoder(vocabulary(tmp_path, write))
    ids, starts, ends = encode_in_graph(encoder, tf.constant(TEXTS))
    spans = iter(zip(starts.numpy().tolist(), ends.numpy().tolist(), strict=True))
    for text, row in zip(TEXTS, ids.to_list(), strict=True):
        assert encode_with_offsets(encoder, text) == (row, [next(spans) for _ in row])
