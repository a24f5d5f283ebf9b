"""The parts of a stream, for any ids that a model may generate: a list of ids takes the place of the search."""
# Nearest tests of: t2t_lite/decoding/generator.py

import random
import weakref

import pytest

from t2t_lite.data.base_problem import Problem
from t2t_lite.decoding.generator import GenerationStream, Generator
from t2t_lite.decoding.hypothesis import Hypothesis, Prompt
from t2t_lite.registry import Registries
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import ByteTextEncoder, SentencePieceEncoder
from tests.decoding.runs import SENTENCES
from tests.text.published_samples import write_byte_level, write_pieces, write_subwords, write_words

NEW = 24


def sentencepiece(folder):
    train_sentencepiece(SENTENCES, str(folder / "vocab"), 330)
    return SentencePieceEncoder(str(folder / "vocab.model"))


ENCODERS = {
    "bytes": lambda folder: ByteTextEncoder(),
    "byte-level BPE": lambda folder: ByteLevelBPEEncoder(write_byte_level(folder)),
    "WordPiece": lambda folder: WordPieceEncoder(write_pieces(folder)),
    "SentencePiece": sentencepiece,
}
if ".subwords" in Registries.encoders:  # of an extra
    ENCODERS["tensor2tensor's"] = lambda folder: Registries.encoders.get(".subwords")(write_subwords(folder))
if "word_bpe" in Registries.encoders:
    ENCODERS["words' BPE"] = lambda folder: Registries.encoders.get("word_bpe")(write_words(folder))
STOPS = [(), ("e", "ab ab"), ("\ufffd", "b "), (" th", "\u20ac"), (" ",)]


class Replay(Generator):
    """A generator that is its own search, which gives the ids of a list: `computed` of them so far."""

    def __init__(self, encoder, problem=None):
        self.encoders, self.problem, self.searcher, self.computed = {"targets": encoder}, problem, self, 0

    def longest_output(self, length, options):
        return options.extra_length

    def stream(self, prompt, options):
        self.computed = 0
        for i in self.replayed:
            self.computed += 1
            yield i

    def streamed(self, ids, stop=(), before=()):
        """Returns (the stream of the ids, the Hypothesis that `generate` returns of them)."""
        self.replayed = ids
        stream = GenerationStream(self, Prompt("", before, False), SearchOptions(stop=stop, extra_length=NEW))
        return stream, self.hypothesis("", Hypothesis(ids=ids[:NEW], ended=len(ids) < NEW), stop, before)


@pytest.mark.parametrize("kind", ENCODERS)
def test_the_parts_of_any_ids_are_their_text(kind, tmp_path):
    """None is taken back: half a character, half an escape, or the beginning of a stop string."""
    encoder, rng = ENCODERS[kind](tmp_path), random.Random(1)
    generator, num_parts = Replay(encoder), 0
    likely = [*encoder.encode("ab ab the \\_ xé"), *encoder.encode("the") * 4]
    for number in range(400):
        ids = rng.choices(likely if number % 2 else range(2, encoder.vocab_size), k=rng.randrange(NEW + 2))
        stop, before = rng.choice(STOPS), rng.choices(likely, k=rng.randrange(3))
        stream, whole = generator.streamed(ids, stop, before)
        parts = list(stream)
        assert "".join(parts) == stream.text == whole.text, (ids, stop, before)
        assert "" not in parts and stream.ended == whole.ended, (ids, stop, before)
        _, endless = generator.streamed(ids, (), before)
        assert (stream.stop is not None) == any(one in endless.text for one in stop), (ids, stop, before)
        assert stream.stop is None or endless.text.startswith(stream.text + stream.stop)
        num_parts += len(parts)
    assert num_parts > 500


def test_a_part_comes_as_soon_as_nothing_can_change_it():
    generator = Replay(ByteTextEncoder(), Problem())
    stream, _ = generator.streamed(ByteTextEncoder().encode("aéb"), ())
    assert [stream.step() for _ in range(5)] == ["a", "", "é", "b", ""]
    stream, _ = generator.streamed([0xF0 + 2, 0xA2 + 2, *ByteTextEncoder().encode("😀")])
    assert [stream.step() for _ in range(7)] == [*[""] * 5, "\ufffd😀", ""]
    stream, _ = generator.streamed([0xA2 + 2] * 5)
    assert [stream.step() for _ in range(6)] == ["", "", "", "\ufffd", "\ufffd", "\ufffd" * 3]
    stream, _ = generator.streamed(ByteTextEncoder().encode("a.b..c"), ("..", "..."))
    assert [stream.step() for _ in range(5)] == ["a", "", ".b", "", ""]
    assert stream.stop == ".." and stream.ended and generator.computed == 5, "nothing is computed behind its end"
    assert stream.step() is None


def test_it_ends_at_its_longest_and_is_freed_without_the_garbage_collector():
    generator = Replay(ByteTextEncoder())
    stream, _ = generator.streamed(ByteTextEncoder().encode("a" * (NEW + 9)))
    assert len("".join(stream)) == generator.computed == NEW and not stream.ended and stream.stop is None
    freed = []
    stream, _ = generator.streamed([5] * 9)
    weakref.finalize(stream, freed.append, True)
    next(stream), stream.close()
    with pytest.raises(StopIteration):
        next(stream)
    del stream
    assert freed and generator.computed == 1


class Reversed(Problem):
    def output_text(self, inputs, outputs, encoders):
        return outputs[::-1]


def test_a_problems_own_text_comes_at_the_end():
    """Of one that changes texts, nothing is known before."""
    stream, whole = Replay(ByteTextEncoder(), Reversed()).streamed(ByteTextEncoder().encode("abc"))
    assert list(stream) == [whole.text] == ["cba"]
