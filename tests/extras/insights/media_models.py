"""Small language models with random weights, of images, of music, and of a user's own files."""

import types

import keras
import numpy as np

from t2t_lite.data.problem import Text2SelfProblem
from t2t_lite.decoding.generator import Generator
from t2t_lite.extras.images.image_own import ImageProblem
from t2t_lite.extras.images.png_files import png_bytes
from t2t_lite.extras.music.music_own import MusicProblem
from t2t_lite.models import TransformerLM
from tests.decoding.letter_generator import generator_of

SIZE = (4, 2, 3)


class Pictures(ImageProblem):
    image_size = SIZE
    class_labels = ("cat", "old dog")


class Pieces(MusicProblem):
    sequence_length = 24
    decode_defaults = types.MappingProxyType({"sampling": True, "extra_length": 12})


def read_dots(path, encoders):
    with open(path) as file:
        return file.read().split()


def draw_dots(path, answers, encoders):
    ((_, (ids,)),) = answers
    return {path: png_bytes(np.full((1, max(len(ids), 1), 1), 255, np.uint8))}


def write_answers(path, answers, encoders):
    return {path: repr(answers).encode()}


class Dots(Text2SelfProblem):
    """A user's own: letters, which are also read from .dots, and drawn as so many white pixels."""

    readers = types.MappingProxyType({"dots": read_dots})
    writers = types.MappingProxyType({"png": draw_dots, "txt": write_answers})


def _generator(problem, **options):
    keras.utils.set_random_seed(2)
    encoders = problem.get_feature_encoders("")
    sizes = {"hidden_size": 16, "filter_size": 16, "num_heads": 2, "num_layers": 2}
    model = TransformerLM(encoders["targets"].vocab_size, **sizes, **options)
    model.build()
    return Generator(model, encoders, None, problem)


def image_generator():
    """Of images of two classes, with two patterns."""
    kinds = [{"type": "local_1d", "block_length": 6}, {"type": "strided", "stride": 5}]
    return _generator(Pictures(), self_attention=kinds, norm="pre")


def music_generator():
    """Of performances."""
    return _generator(Pieces(), norm="pre", position="learned", max_position=64)


def dots_generator():
    """Of a user's own files."""
    generator = generator_of(norm="pre", position="learned", max_position=24)
    generator.problem = Dots()
    return generator
