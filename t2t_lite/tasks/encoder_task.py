"""EncoderTask: converts texts to an encoder's input, and its logits to answers, in Python and in graphs."""

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

_POSITIONS = 4096  # number of positions computed at a time if a text has many rows


@dataclasses.dataclass(frozen=True)
class Reading:
    """The rows that a model reads for one text.

    Attributes:
        rows: list of one or more rows, each a list of ids.
        truncated: bool, whether a part of the text was left out of the rows.
        source: data that the answer needs in addition to the model's output, such as the text.
    """

    rows: list
    truncated: bool = False
    source: object = None

    def __len__(self):
        return sum(map(len, self.rows))


class EncoderTask(Task):
    """A task that a `Predictor` answers. Subclasses define the meaning of the logits for "targets".

    `scores` converts logits to scores such as probabilities. Three kinds of results are computed from these scores:
    answers for users (`answer`), comparisons in evaluations (`choose`, `compared`) and the outputs of an export
    (`outputs`).

    Attributes:
        method: str, the name of the `Predictor` method that answers.
        count: str, the name of this method's argument for the number of hypotheses.
        labels: list of str, the classes or tags, if any.
        num_texts: int, the number of texts in a row; a problem's attribute with this name takes precedence.
        has_hypotheses: bool, whether an answer has several hypotheses.
        long_input: tuple, the values of --long_input that are allowed for a long text, the default first.
        columns: tuple of str, the names of the columns that are read from a labelled file; () if the task has no
            labelled files.
        unit: str, what an answer is about, such as "text", for reports.
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

    # Methods that convert texts to rows.

    def read(self, text, longest):
        """Returns the Reading of a text to be answered; arguments and errors as in `whole`."""
        return self.whole(text, longest)

    def whole(self, text, longest):
        """Returns the Reading of a text in one row.

        Args:
            text: str, or a tuple of `num_texts` str.
            longest: int, the maximum length of the row, in ids. If the row is longer, its end is cut off. In a pair,
                the end of the longer text is cut off first.

        Raises:
            UserError: the number of texts is wrong, or the vocabulary cannot encode a text.
        """
        prepare = self.problem.input_text
        ids = [i for text in self.texts(text) for i in (*encode_beginning(self, text, longest, prepare), EOS_ID)]
        if len(ids) <= longest:
            return Reading([ids])
        return Reading([cut_texts(tf.constant(ids), longest).numpy().tolist()], True)

    def encode(self, text):
        """Returns the ids of a text, without the end id."""
        return self.encoder.encode(text)

    def texts(self, text):
        """Returns a row's texts as a tuple. Raises `UserError` if the problem has a different number of texts."""
        texts = text if isinstance(text, tuple) else (text,)
        if len(texts) != self.num_texts:
            raise UserError(
                f"{counted(len(texts), 'text')}. Expected {self.num_texts}, as in a row of {self.problem.full_name}."
            )
        return texts

    def is_labelled(self, line):
        """Returns whether a line begins with a label and a tab, as in a file of labelled texts."""
        return line.partition("\t")[0] in self.labels and "\t" in line

    # Methods that convert logits to answers.

    def scores(self, logits):
        """Converts the logits of a batch to scores, float32 [rows, …], in a graph."""
        raise NotImplementedError

    def answer(self, reading, scores, n_best):
        """Returns the result of `Predictor.predict` for a text.

        Args:
            reading: Reading.
            scores: list of arrays, the scores of the text's rows.
            n_best: int, the maximum number of hypotheses, if the task has several.
        """
        raise NotImplementedError

    def choose(self, logits, inputs):
        """Returns the best targets of a batch, [rows, …], from logits and int32 `inputs` [rows, …], in a graph."""
        raise NotImplementedError

    def compared(self, inputs, targets, chosen):
        """Returns (predicted answer, expected answer) of a row for metrics to compare; the arguments are arrays."""
        raise NotImplementedError

    # Files.

    @staticmethod
    def as_line(answer):
        """Formats an answer as a line of t2t-decoder with tab-separated fields; returns None if it is always JSON."""
        return None

    @staticmethod
    def as_json(answer):
        """Returns an answer as a JSON object, with `truncated` only if it is True."""
        fields = dataclasses.asdict(answer)
        return {name: value for name, value in fields.items() if name != "truncated" or value}

    @classmethod
    def shown(cls, answer):
        """Returns what a web page shows for an answer: (text, lists of (text, probability))."""
        return cls.as_line(answer).replace("\t", " "), []

    @classmethod
    def file_reader(cls, ending, problem, folder):
        """Returns a function that reads a file of inputs in a format of this task, or None for a file with lines of
        text. The function takes a path and returns a list of lines, see `decoding.command.lines`.

        Args:
            ending: str, the extension of the file in lower case, such as "json".
            problem: Problem.
            folder: str, the folder of the problem's configuration.
        """
        return None

    @staticmethod
    def as_label(cell):
        """Returns the answer in a cell of a labelled file, or None if the cell does not contain an answer."""
        return cell

    @classmethod
    def references(cls, path, layout):
        """Returns (expected answers in a labelled file, their keys): see `evaluation.answer_scores.Reference`.

        Args:
            path: str.
            layout: corpora.tables.Layout of `columns`.
        """
        return answer_scores.read_column(path, cls.as_label, layout)

    @classmethod
    def predictions(cls, path, reference):
        """Returns the answers in a file of predictions, in the order of a `Reference`."""
        return answer_scores.read_predicted_column(path, cls.as_label, reference)

    # Methods that make the graph of an export.

    @property
    def inputs(self):
        """The names of an export's inputs, a tuple of str."""
        return ("inputs",) if self.num_texts == 1 else ("first", "second")

    def export_settings(self):
        """Checks the settings of an export that this task declares as arguments; returns {name: value}."""
        return {}

    def export_length(self, max_input_length, most):
        """Returns the maximum number of ids that an export reads from an input.

        Args:
            max_input_length: int, or None for the task's default.
            most: int, the maximum length of a row, in ids.

        Raises:
            UserError: the number is out of range, or exports cannot read the vocabulary.
        """
        length = longest_input(max_input_length, most)
        return typed_value("max_input_length", length, int, Range(2 * len(self.inputs) - 1, most))

    def features_length(self, longest, most):
        """Returns the maximum number of ids for which an export returns features; for `longest` see `export_length`."""
        return longest

    @functools.cached_property
    def encode_texts(self):
        """A tf.function that encodes texts, string [batch] (any bytes) -> int32 ragged [batch, (length)]."""
        return encoding(self.encoder)

    def whole_rows(self, texts, longest):
        """Like `whole`, in a graph: list of string [batch] -> (ids int32 [batch, width], truncated bool [batch])."""
        return row_reader(self.encode_texts, longest, self.num_texts)(*texts)

    def answers(self, predictor, texts, longest, **settings):
        """Returns an export's outputs, {name: tensor [batch, …]}, including "truncated" bool [batch], in a graph.

        Args:
            predictor: Predictor.
            texts: list of string [batch] (any bytes), one tensor per name in `inputs`.
            longest: int, see `export_length`.
            **settings: see `export_settings`.
        """
        ids, truncated = self.whole_rows(texts, longest)
        return {**self.outputs(predictor.probabilities(ids)), "truncated": truncated}

    def outputs(self, scores):
        """Converts the `scores` of a batch to an export's outputs, {name: tensor [batch, …]}, in a graph."""
        raise NotImplementedError

    def card(self, **settings):
        """Returns ({title: text}, a description of the outputs in Markdown) for the model card of an export."""
        raise NotImplementedError

    def warmup_text(self, text):
        """Converts a text, given as bytes, to a text that suits the task, for warming up a server."""
        return text


def by_rows(function, ids):
    """Applies a function to a few rows at a time, in a graph, to save memory for texts that have many rows.

    Args:
        function: int32 [some rows, width] -> tensor [some rows, …].
        ids: int32 [rows, width].
    """
    ids = tf.pad(ids, [[0, 0], [0, tf.cast(tf.shape(ids)[1] == 0, tf.int32)]])
    rows = tf.maximum(1, _POSITIONS // tf.shape(ids)[1])
    first = function(ids[:rows])

    def more(at, outputs):
        return at + rows, tf.concat([outputs, function(ids[at : at + rows])], 0)

    shapes = tf.TensorShape([]), tf.TensorShape([None, *first.shape[1:]])
    return tf.while_loop(lambda at, _: at < tf.shape(ids)[0], more, (rows, first), shape_invariants=shapes)[1]
