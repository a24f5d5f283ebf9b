"""EncoderTask: what an encoder reads of texts, and what its logits say of them, in Python and in an export's graph."""

import dataclasses
import functools

import tensorflow as tf

from t2t_lite.errors import UserError, counted
from t2t_lite.evaluation import answer_scores
from t2t_lite.settings.ranges import Range, typed_value
from t2t_lite.tasks.task import Task
from t2t_lite.text.reading_graph import encoding, longest_input, row_reader
from t2t_lite.text.rows import cut_texts, encode_beginning
from t2t_lite.text.vocabulary import EOS_ID

_POSITIONS = 4096  # that are computed at a time of texts of many rows


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a model reads of one text.

    Attributes:
        rows: list of one or more rows, each a list of int.
        truncated: bool, whether some of the text is in no row.
        source: what the answer needs of the text beside the model's output.
    """

    rows: list
    truncated: bool = False
    source: object = None

    def __len__(self):
        return sum(map(len, self.rows))


class EncoderTask(Task):
    """What a `Predictor` answers. Subclasses say what the logits of "targets" mean.

    `scores` is that meaning: what users are answered (`answer`), what evaluations compare (`choose`, `compared`) and
    what an export returns (`outputs`) is computed from it.

    Attributes:
        method, count: str, of Predictor what answers, and its argument that says how many hypotheses there are.
        labels: list of str, the classes or tags, if there are such.
        num_texts: int, the texts of a row, unless the problem says it.
        has_hypotheses: bool, whether an answer has several.
        long_input: tuple of the values of --long_input that a long text has a choice of.
        columns: tuple of str, the names of the columns of a labelled file that are read; (): it has none.
        unit: str, what an answer is about, in reports.
    """

    answered_by = "Predictor"
    model = "transformer_encoder"
    smooths_labels = False
    method, count = "predict", "n_best"
    labels = ()
    num_texts = 1
    has_hypotheses = False
    long_input = ("truncate", "refuse")
    columns = ("label",)
    unit = "text"
    hub_task, export_name, output = "text-classification", "predict", "labels"

    def __init__(self, problem, encoders):
        super().__init__(problem, encoders)
        self.encoder = encoders["inputs"]
        self.num_texts = getattr(problem, "num_texts", self.num_texts)

    # Texts -> rows.

    def read(self, text, longest):
        """Returns the Reading of a text for an answer; the arguments and errors are those of `whole`."""
        return self.whole(text, longest)

    def whole(self, text, longest):
        """Returns the Reading of a text in one row.

        Args:
            text: str, or a tuple of `num_texts` str.
            longest: int, the most ids of a row; of longer ones the end is not read, of a pair that of the longer text.

        Raises:
            UserError: another number of texts, or the vocabulary cannot encode one.
        """
        prepare = self.problem.input_text
        ids = [i for text in self.texts(text) for i in (*encode_beginning(self, text, longest, prepare), EOS_ID)]
        if len(ids) <= longest:
            return Reading([ids])
        return Reading([cut_texts(tf.constant(ids), longest).numpy().tolist()], True)

    def encode(self, text):
        """Returns the ids of a text, without its end."""
        return self.encoder.encode(text)

    def texts(self, text):
        """Returns the tuple of a row's texts. Raises `UserError` for another number of them than the problem has."""
        texts = text if isinstance(text, tuple) else (text,)
        if len(texts) != self.num_texts:
            raise UserError(
                f"{counted(len(texts), 'text')}. Expected {self.num_texts}, as {self.problem.full_name} has in a row."
            )
        return texts

    # What the logits mean.

    def scores(self, logits):
        """Returns what the logits of a batch say, float32 [rows, …]; in a graph."""
        raise NotImplementedError

    def answer(self, reading, scores, n_best):
        """Returns what `Predictor.predict` returns of a text.

        Args:
            reading: Reading.
            scores: list of arrays, those of its rows.
            n_best: int, how many hypotheses there may be at most, where there are several.
        """
        raise NotImplementedError

    def choose(self, logits, inputs):
        """Returns what a batch's logits of the targets choose, [rows, …]; in a graph. `inputs` are int32 [rows, …]."""
        raise NotImplementedError

    def compared(self, inputs, targets, chosen):
        """Returns (the answer chosen, the one expected) of a row, as metrics compare them; arguments are arrays."""
        raise NotImplementedError

    # Files.

    @staticmethod
    def as_line(answer):
        """Returns an answer as a line of t2t-decoder's output, its fields divided by tabs; None: always as JSON."""
        return None

    @staticmethod
    def as_json(answer):
        """Returns an answer as a JSON object, without `truncated` where it is False."""
        found = dataclasses.asdict(answer)
        return {name: value for name, value in found.items() if name != "truncated" or value}

    @classmethod
    def shown(cls, answer):
        """Returns (text, lists of (text, probability)), which a page shows of an answer."""
        return cls.as_line(answer).replace("\t", " "), []

    @classmethod
    def file_reader(cls, ending, problem, folder):
        """Returns a function of a path that reads what is to be answered of a file in a format of the task's own.

        It returns a list of lines, see `decoding.command.lines`. None: the file has lines of text.

        Args:
            ending: str, of the file's name, in lower case, such as "json".
            problem: Problem.
            folder: str, where the problem's configuration is.
        """
        return None

    @staticmethod
    def as_label(cell):
        """Returns the answer that is written in a column of a file, or None if it is none."""
        return cell

    @classmethod
    def references(cls, path, layout):
        """Returns (the answers expected in a labelled file, their keys), see `evaluation.answer_scores.Reference`.

        Args:
            path: str.
            layout: corpora.tables.Layout of `columns`.
        """
        return answer_scores.read_column(path, cls.as_label, layout)

    @classmethod
    def predictions(cls, path, reference):
        """Returns the answers in a file of predictions, in the order of a `Reference`."""
        return answer_scores.read_predicted_column(path, cls.as_label, reference)

    # An export's graph.

    @property
    def inputs(self):
        """The names of an export's inputs, a tuple of str."""
        return ("inputs",) if self.num_texts == 1 else ("first", "second")

    def export_settings(self):
        """Returns {name: value} of further settings of an export, after checking them: the arguments."""
        return {}

    def export_length(self, max_input_length, most):
        """Returns the most ids that an export reads of an input.

        Args:
            max_input_length: int; None: the task's default.
            most: int, the most ids of a row.

        Raises:
            UserError: it is out of range, or no export can read the vocabulary.
        """
        found = longest_input(max_input_length, most)
        return typed_value("max_input_length", found, int, Range(2 * len(self.inputs) - 1, most))

    def features_length(self, longest, most):
        """Returns the most ids of which an export gives features; `longest` is the result of `export_length`."""
        return longest

    @functools.cached_property
    def encode_texts(self):
        """A tf.function: string [batch], any bytes -> int32 ragged [batch, (length)]; with the vocabulary's file."""
        return encoding(self.encoder)

    def whole_rows(self, texts, longest):
        """`whole` in a graph: list of string [batch] -> (ids int32 [batch, width], truncated bool [batch])."""
        return row_reader(self.encode_texts, longest, self.num_texts)(*texts)

    def answers(self, predictor, texts, longest, **settings):
        """Returns what an export answers, {name: tensor [batch, …]}, "truncated" bool [batch] among it; in a graph.

        Args:
            predictor: Predictor.
            texts: list of string [batch], any bytes, one for each of `inputs`.
            longest: int, see `export_length`.
            **settings: see `export_settings`.
        """
        ids, truncated = self.whole_rows(texts, longest)
        return {**self.outputs(predictor.probabilities(ids)), "truncated": truncated}

    def outputs(self, scores):
        """Returns what an export answers of a batch's `scores`, {name: tensor [batch, …]}; in a graph."""
        raise NotImplementedError

    def card(self, **settings):
        """Returns ({title: text}, the outputs of an export in Markdown) for its model card."""
        raise NotImplementedError

    def warmup_text(self, text):
        """Returns a text, bytes, that a server may read before the first user's, made of an arbitrary one."""
        return text


def by_rows(function, ids):
    """Applies a function, some rows at a time, in a graph, so that long texts of many rows take little memory.

    Args:
        function: int32 [some rows, width] -> tensor [some rows, …].
        ids: int32 [rows, width].
    """
    ids = tf.pad(ids, [[0, 0], [0, tf.cast(tf.shape(ids)[1] == 0, tf.int32)]])
    rows = tf.maximum(1, _POSITIONS // tf.shape(ids)[1])
    first = function(ids[:rows])

    def more(at, found):
        return at + rows, tf.concat([found, function(ids[at : at + rows])], 0)

    shapes = tf.TensorShape([]), tf.TensorShape([None, *first.shape[1:]])
    return tf.while_loop(lambda at, _: at < tf.shape(ids)[0], more, (rows, first), shape_invariants=shapes)[1]
