"""Encoders of every task, with random weights, the texts that they read and the answers that are expected."""

import dataclasses
import typing

import keras

from t2t_lite.data.problem import Problem, Text2ClassProblem
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.models import TransformerEncoder
from t2t_lite.text.class_label_encoder import ClassLabelEncoder, RealEncoder
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from t2t_lite.text.subwords import train_sentencepiece
from t2t_lite.text.vocabulary import ByteTextEncoder, SentencePieceEncoder
from tests.decoding.runs import SENTENCES
from tests.export.served import HOSTILE
from tests.text.published_samples import write_byte_level, write_pieces

LONGEST, LABELS = 24, ["one", "three", "two"]
MASKED = [b"the [MASK] house", b"[MASK]", b"  [MASK]  [MASK]", b"the red[MASK].", b"a\t[MASK], [MASK]s [MASK]"]
TEXTS = [b"the red house.", b"", b"   ", b"a green tree is old", b"is " * 60, *HOSTILE]


class Pairs(Text2ClassProblem):
    """Three classes of pairs."""

    name, num_texts, num_classes = "pairs", 2, len(LABELS)


class Numbers(Text2ClassProblem):
    """Numbers of texts."""

    name, task = "numbers", "regression"


class Tags(Problem):
    """Tags of words."""

    name, task = "tags", "tagging"


class Spans(Problem):
    """Answers to questions, of long contexts in windows."""

    name, task, sequence_length, doc_stride = "spans", "spans", 20, 4


class Masks(Problem):
    """Masked words."""

    name, task = "masks", "masked_language_model"


def sentencepiece(folder):
    train_sentencepiece(SENTENCES, str(folder / "vocab"), 330, user_defined_symbols=["[MASK]"])
    return SentencePieceEncoder(str(folder / "vocab.model"))


def pairs(predictor, texts):
    """Expected answers to pairs."""
    found = predictor.predict(texts)
    rows = {"labels": [p.label for p in found], "probabilities": [[*p.probabilities.values()] for p in found]}
    return {**rows, "truncated": [p.truncated for p in found]}


def numbers(predictor, texts):
    """Expected numbers."""
    found = predictor.predict(texts)
    return {"values": [p.value for p in found], "truncated": [p.truncated for p in found]}


def tags(predictor, texts):
    """Expected tags, of long sentences in the same parts."""
    found = predictor.predict(texts, max_length=LONGEST)
    return {name: [getattr(p, name) for p in found] for name in ("words", "tags", "probabilities")}


def spans(predictor, texts):
    """Expected answers to questions."""
    found = predictor.predict(texts)
    columns = {"answers": "text", "starts": "start", "ends": "end", "probabilities": "probability"}
    return {name: [getattr(answer, of) for answer in found] for name, of in columns.items()}


def masks(predictor, texts):
    """Expected answers to texts with masks; other texts have none."""
    found = [predictor.fill_mask([text], top=3)[0] if "[MASK]" in text else [] for text in texts]
    columns = {"candidates": "token", "probabilities": "probability"}
    return {name: [[[getattr(c, of) for c in mask] for mask in row] for row in found] for name, of in columns.items()}


@dataclasses.dataclass(frozen=True)
class Kind:
    """What is exported."""

    problem: Problem
    head: str
    vocabulary: typing.Callable
    columns: dict
    expected: typing.Callable
    settings: dict
    card: tuple


KINDS = {
    "pairs": Kind(
        Pairs(), "class", lambda folder: WordPieceEncoder(write_pieces(folder)),
        {"first": TEXTS, "second": [*reversed(TEXTS)]}, pairs,
        {"layers": "last_four", "join": "concat"},
        ("`first` and `second`, string [batch]", '{"first": ["…"], "second": ["…"]}', "classes | one, three, two"),
    ),
    "numbers": Kind(
        Numbers(), "real", lambda folder: ByteTextEncoder(), {"inputs": TEXTS}, numbers, {"pooling": "first"},
        ("| numbers | -2 to 5 in training", "`values` float32 [batch]"),
    ),
    "tags": Kind(
        Tags(), "tag", lambda folder: ByteLevelBPEEncoder(write_byte_level(folder)),
        {"inputs": [*(text[:2000] for text in TEXTS), " the\u2003aa's\u0085  the's\u1680".encode(), b"the " * 22]},
        tags, {},
        ('"token-classification"', "| tags | one, three, two", "`words`, `tags` string"),
    ),
    "spans": Kind(
        Spans(), "span", sentencepiece,
        {"question": [b"the old house?", b"", b"is it the red"] * 7, "context": TEXTS}, spans,
        {"max_input_length": 200},
        ('"question-answering"', "`question` and `context`", "`answers` string, `starts` and `ends` int32"),
    ),
    "masks": Kind(
        Masks(), "masked_lm", sentencepiece,
        {"inputs": [*MASKED, *(text + b" [MASK] is" for text in TEXTS)]},
        masks, {"top": 3, "layers": [0, 2], "join": "sum", "pooling": "mean"},
        ('"fill-mask"', "| mask | [MASK]", "`candidates` string", "float32 [batch, n]"),
    ),
}  # fmt: skip


def make_predictor(kind, folder):
    """Returns a Predictor with random weights, which are large, so that answers differ."""
    inputs = kind.vocabulary(folder)
    targets = {"masked_lm": inputs, "real": RealEncoder(-2, 5)}.get(kind.head, ClassLabelEncoder(LABELS))
    keras.utils.set_random_seed(2)
    model = TransformerEncoder(
        inputs.vocab_size, targets.vocab_size, head=kind.head, num_layers=2, hidden_size=16, filter_size=32,
        num_heads=2, max_position=40, initializer_gain=0.4,
    )  # fmt: skip
    model.build()
    return Predictor(model, {"inputs": inputs, "targets": targets}, kind.problem)
