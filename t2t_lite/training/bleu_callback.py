"""BLEU and chrF of real translations during Keras' own `fit`."""

import keras

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.records import Records
from t2t_lite.data.splits import named_split
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError, shown
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.settings.config import HParams
from t2t_lite.training.output_scorer import OutputScorer


class BleuCallback(keras.callbacks.Callback):
    """Translates a split by beam search after epochs of `fit`, and logs the scores as "val_bleu" and "val_chrf".

    Search and scores are t2t-trainer's: sacreBLEU, cased, with the tokenization of the target language. Put it before
    callbacks that monitor "val_bleu" (with `mode="max"`), such as `EarlyStopping`. In epochs without a translation
    there is no "val_bleu", as there is no "val_loss" with `fit`'s `validation_freq`. TensorFlow only.

    Args:
        problem: Problem, or its name.
        data_dir: str, the folder that t2t-datagen wrote.
        hparams: HParams, or the name of a set, of which eval_beam_size, eval_alpha and eval_tokenization are used;
            None: theirs by default.
        split: "eval" (or "dev"), "test" or "train".
        max_examples: int, how many evenly spaced examples are translated; None: all.
        epochs: int, epochs from one translation to the next.
        steps: int: also translate after every so many steps of training, whose score is in `history` alone; None: not.
        verbose: 0 or 1, whether to print each score with its signature.
        **search: options of `t2t_lite.settings.search_options.SearchOptions`, such as beam_size=1.

    Attributes:
        history: list of (step, BLEU).
        signature: str, sacreBLEU's, of the last score.
        texts: list of (input, output, reference) of the last one.

    Raises:
        UserError: data are missing or damaged, or an option is out of range; when `fit` begins also for a model that
            can't translate.
    """

    def __init__(
        self,
        problem: Problem | str,
        data_dir: str,
        hparams: HParams | str | None = None,
        split: str = "eval",
        max_examples: int | None = None,
        epochs: int = 1,
        steps: int | None = None,
        verbose: int = 0,
        **search,
    ):
        super().__init__()
        check_tensorflow(type(self).__name__)
        for name, value in {"max_examples": max_examples, "epochs": epochs, "steps": steps}.items():
            if not (value is None and name != "epochs") and (not isinstance(value, int) or value < 1):
                raise UserError(f"{type(self).__name__}: {name}={shown(value)}: expected a whole number of at least 1.")
        self.problem = registry.problem(problem) if isinstance(problem, str) else problem
        self.hparams = HParams() if hparams is None else registry.hparams(hparams)
        split = named_split(split)
        records = Records(self.problem, data_dir, split)
        records.check()
        self.encoders, self.paths = self.problem.get_feature_encoders(data_dir), records.paths
        self.max_examples, self.epochs, self.steps, self.verbose = max_examples, epochs, steps, verbose
        self.search = search
        self.history, self.signature, self.texts = [], "", []
        self._score = None

    def on_train_begin(self, logs=None):
        """Prepares the search, once for each model; scores of an earlier `fit` are not given again."""
        self._scored_at, self._periods = None, self._step() // (self.steps or 1)
        if self._score is None:
            translator = Translator(self.model, self.encoders, self.hparams, self.problem)
            batches = batching.evaluation_batches(self.problem, self.hparams, self.paths, self.encoders)
            self._score = OutputScorer(
                translator, ["bleu", "chrf"], batches, self.paths, self.max_examples, self.search
            )

    def on_train_batch_end(self, batch, logs=None):
        """Translates after every `steps` steps, or as soon after as Keras calls: see `steps_per_execution`."""
        if self.steps and self._step() // self.steps > self._periods:
            self._periods = self._step() // self.steps
            self._translate()

    def on_epoch_end(self, epoch, logs=None):
        """Translates after every `epochs` epochs, and adds the scores to `logs`."""
        if (epoch + 1) % self.epochs:
            return
        if self._scored_at != self._step():
            self._translate()
        if logs is not None:
            logs.update({f"val_{name}": score for name, score in self._scores.items()})

    def set_model(self, model):
        """Called by `fit`."""
        if model is not self.model:
            self._score = None
        super().set_model(model)

    def _step(self):
        return int(self.model.optimizer.iterations)

    def _translate(self):
        self._scores, facts, self.texts = self._score()
        score, self.signature = self._scores["bleu"], facts["bleu_signature"]
        self._scored_at = self._step()
        self.history.append((self._scored_at, score))
        if self.verbose:
            print(f"\nval_bleu: {score:.2f} ({self.signature})")
